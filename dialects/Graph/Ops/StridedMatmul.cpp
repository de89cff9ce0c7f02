//===- StridedMatmul.cpp - A contraction as one strided matrix product
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/StridedMatmul.h"

using namespace mlir;
using namespace bowline::graph;

namespace {
struct Walk {
  int64_t size = 1, stride = 0;
};
} // namespace

/// Several dimensions as one, if each steps over exactly what the next one covers. Dimensions of size one need no step.
static std::optional<Walk> collapse(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  Walk walk;
  for (int64_t dim : llvm::reverse(dims)) {
    if (shape[dim] == 1)
      continue;
    if (walk.size == 1)
      walk.stride = strides[dim];
    else if (strides[dim] != walk.stride * walk.size)
      return std::nullopt;
    walk.size *= shape[dim];
  }
  return walk;
}

std::optional<StridedMatmul> StridedMatmul::of(DotGeneralOp op) {
  ArrayRef<int64_t> lhs = op.getLhs().getType().getShape(), rhs = op.getRhs().getType().getShape();
  auto lhsBatch = collapse(lhs, op.getLhsBatch()), rhsBatch = collapse(rhs, op.getRhsBatch());
  auto lhsFree = collapse(lhs, op.getLhsFree()), rhsFree = collapse(rhs, op.getRhsFree());
  auto lhsContract = collapse(lhs, op.getLhsContract()), rhsContract = collapse(rhs, op.getRhsContract());
  if (!lhsBatch || !rhsBatch || !lhsFree || !rhsFree || !lhsContract || !rhsContract)
    return std::nullopt;
  StridedMatmul result;
  result.batch = lhsBatch->size;
  result.m = lhsFree->size;
  result.n = rhsFree->size;
  result.k = lhsContract->size;
  result.aStrides = {lhsBatch->stride, lhsFree->stride, lhsContract->stride};
  result.bStrides = {rhsBatch->stride, rhsContract->stride, rhsFree->stride};
  result.cStrides = {result.m * result.n, result.n, 1};
  return result;
}
