//===- OverlapChoices.h - How much communication may overlap
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_OVERLAP_OVERLAPCHOICES_H
#define BOWLINE_PASSES_OVERLAP_OVERLAPCHOICES_H

#include "passes/Overlap/CommandOverlap.h"

namespace bowline {

/// The choices of overlap-commands besides no overlap, from the one that takes most memory to the one that takes least:
/// `most`, the same without prefetch, and that without merged runs too.
llvm::SmallVector<OverlapOptions> overlapChoices(const OverlapOptions &most);

/// Overlaps the commands of `copy` (Roles.h) and inserts events, as the passes of phase overlap do. Returns the seconds
/// that a step is shorter by the cost model.
double overlapCopy(mlir::ModuleOp copy, const OverlapOptions &options);

} // namespace bowline

#endif // BOWLINE_PASSES_OVERLAP_OVERLAPCHOICES_H
