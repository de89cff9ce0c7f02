//===- Alignment.h - What buffers begin at multiples of
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_PLAN_ALIGNMENT_H
#define BOWLINE_DIALECTS_PLAN_ALIGNMENT_H

#include "llvm/ADT/StringRef.h"

namespace bowline::plan {

/// Of a module, an i64: the bytes that all buffers begin at multiples of, as the target wants it. Without it
/// kAlignment.
inline constexpr llvm::StringLiteral kAlignmentAttr = "plan.alignment";

} // namespace bowline::plan

#endif // BOWLINE_DIALECTS_PLAN_ALIGNMENT_H
