//===- DimSplit.cpp - Dimensions that are seen as two
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/DimSplit.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace bowline::graph;

static bool isSplit(const DimSplit &dim) { return dim.isSplit(); }

bool bowline::graph::hasSplit(ArrayRef<DimSplit> splits) { return llvm::any_of(splits, isSplit); }

SmallVector<int64_t, 2> bowline::graph::splitDim(ArrayRef<DimSplit> splits, int64_t dim) {
  int64_t first = dim + llvm::count_if(splits.take_front(dim), isSplit);
  return splits[dim].isSplit() ? SmallVector<int64_t, 2>{first, first + 1} : SmallVector<int64_t, 2>{first};
}

SmallVector<int64_t> bowline::graph::splitDims(ArrayRef<DimSplit> splits, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> list;
  for (int64_t dim : dims)
    llvm::append_range(list, splitDim(splits, dim));
  return list;
}

SmallVector<int64_t> bowline::graph::splitShape(ArrayRef<DimSplit> splits, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> sizes;
  for (auto [split, size] : llvm::zip_equal(splits, shape)) {
    if (split.isSplit())
      sizes.push_back(split.parts);
    sizes.push_back(split.isSplit() ? split.rest : size);
  }
  return sizes;
}

void bowline::graph::setSplitTypes(Operation *op, ArrayRef<DimSplits> results) {
  for (auto [result, splits] : llvm::zip_equal(op->getResults(), results))
    if (hasSplit(splits)) {
      auto type = cast<RankedTensorType>(result.getType());
      result.setType(type.clone(splitShape(splits, type.getShape())));
    }
}
