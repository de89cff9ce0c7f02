//===- FlatShards.h - On the way to equal parts of all elements, and back
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_PLACEMENT_FLATSHARDS_H
#define BOWLINE_COMPILER_PLACEMENT_FLATSHARDS_H

#include "compiler/Placement/PlacementRules.h"

namespace bowline {

/// The placements of the result of a reshape, of added or removed zeros behind the end, or of the sum of all elements,
/// where the operand is on its way to a flat shard (ValuePlacement::flat) or back. None for other operations.
llvm::SmallVector<ValuePlacement, 1> placeFlat(mlir::Operation *op, llvm::ArrayRef<ValuePlacement> operands,
                                               const PlacementRules &rules);

} // namespace bowline

#endif // BOWLINE_COMPILER_PLACEMENT_FLATSHARDS_H
