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

/// Returns placements for the operations that make a flat shard (ValuePlacement::flat) or convert it back: reshapes,
/// appended or removed zeros; also for a sum over all its elements. Returns none for other operations.
llvm::SmallVector<ValuePlacement, 1> placeFlat(mlir::Operation *op, llvm::ArrayRef<ValuePlacement> operands,
                                               const PlacementRules &rules);

} // namespace bowline

#endif // BOWLINE_COMPILER_PLACEMENT_FLATSHARDS_H
