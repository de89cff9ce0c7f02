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

/// The split of a dimension that has equal parts side by side, as that of a projection to queries, keys and values: it
/// becomes two dimensions [parts, rest], in the same order of elements. It stays as it is where `parts` is 0.
struct DimSplit {
  int64_t parts = 0, rest = 0;

  bool isSplit() const { return parts > 0; }
  /// Returns whether the elements [offset, offset + size) of the dimension are one part.
  bool isPart(int64_t offset, int64_t size) const { return offset % rest == 0 && size == rest; }
};

/// One split per dimension of a tensor.
using DimSplits = llvm::SmallVector<DimSplit>;

/// Returns whether a dimension is split.
bool hasSplit(llvm::ArrayRef<DimSplit> splits);

/// The dimensions that dimension `dim`, or each of `dims` in turn, has become.
llvm::SmallVector<int64_t, 2> splitDim(llvm::ArrayRef<DimSplit> splits, int64_t dim);
llvm::SmallVector<int64_t> splitDims(llvm::ArrayRef<DimSplit> splits, llvm::ArrayRef<int64_t> dims);

/// The shape that `shape` has become.
llvm::SmallVector<int64_t> splitShape(llvm::ArrayRef<DimSplit> splits, llvm::ArrayRef<int64_t> shape);

/// Gives the results of an operation the shapes that they have become. This is all there is to do for an operation
/// whose attributes name no dimension.
void setSplitTypes(mlir::Operation *op, llvm::ArrayRef<DimSplits> results);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_DIMSPLIT_H
