//===- DimSplit.h - Dimensions that are seen as two
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_DIMSPLIT_H
#define BOWLINE_DIALECTS_GRAPH_DIMSPLIT_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"

namespace bowline::graph {

/// The split of a dimension that consists of equal parts side by side, such as the output of a projection to queries,
/// keys and values. The dimension becomes two, [parts, rest], in the same element order. `parts` 0 means no split.
struct DimSplit {
  int64_t parts = 0, rest = 0;

  bool isSplit() const { return parts > 0; }
  /// Returns whether the elements [offset, offset + size) of the unsplit dimension are exactly one part.
  bool isPart(int64_t offset, int64_t size) const { return offset % rest == 0 && size == rest; }
};

/// One split per dimension of a tensor.
using DimSplits = llvm::SmallVector<DimSplit>;

/// Returns whether any dimension is split.
bool hasSplit(llvm::ArrayRef<DimSplit> splits);

/// Returns the dimensions after the split that correspond to dimension `dim`, or to each of `dims` in turn.
llvm::SmallVector<int64_t, 2> splitDim(llvm::ArrayRef<DimSplit> splits, int64_t dim);
llvm::SmallVector<int64_t> splitDims(llvm::ArrayRef<DimSplit> splits, llvm::ArrayRef<int64_t> dims);

/// Returns the shape after the split of a tensor of shape `shape`.
llvm::SmallVector<int64_t> splitShape(llvm::ArrayRef<DimSplit> splits, llvm::ArrayRef<int64_t> shape);

/// Sets the types of an operation's results to their shapes after the split. This implements splitDims for operations
/// whose attributes name no dimensions.
void setSplitTypes(mlir::Operation *op, llvm::ArrayRef<DimSplits> results);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_DIMSPLIT_H
