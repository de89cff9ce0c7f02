//===- AxisDivision.h - One axis of the mesh becomes two
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_SHARDING_ASSIGNMENT_AXISDIVISION_H
#define BOWLINE_PASSES_SHARDING_ASSIGNMENT_AXISDIVISION_H

#include "dialects/Dist/DistOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace bowline {

/// The name of a part of an axis: "tp/0" is the outer one of "tp", "tp/1" the inner one.
std::string partOfAxis(llvm::StringRef axis, int part);

/// Replaces an axis of the module's mesh by its two parts, the first with \p outer ranks. Ranks keep their numbers, and
/// every sharding that named the axis names both parts instead.
void divideAxis(mlir::ModuleOp module, llvm::StringRef axis, int64_t outer);

} // namespace bowline

#endif // BOWLINE_PASSES_SHARDING_ASSIGNMENT_AXISDIVISION_H
