//===- PlanAttrs.h - Attributes of the plan dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_PLAN_PLANATTRS_H
#define BOWLINE_DIALECTS_PLAN_PLANATTRS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace bowline::plan {

/// The largest alignment, in bytes, that a plan may require of an address.
inline constexpr int64_t kMaxAlignment = 4096;
/// Returns whether `bytes` is a power of two up to kMaxAlignment.
bool isAlignment(int64_t bytes);

} // namespace bowline::plan

#include "dialects/Plan/PlanEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Plan/PlanAttrs.h.inc"

#endif // BOWLINE_DIALECTS_PLAN_PLANATTRS_H
