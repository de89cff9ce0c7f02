//===- StridedMatmul.h - A contraction as one strided matrix product
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_OPS_STRIDEDMATMUL_H
#define BOWLINE_DIALECTS_GRAPH_OPS_STRIDEDMATMUL_H

#include "dialects/Graph/GraphOps.h"

#include <array>
#include <optional>

namespace bowline::graph {

/// `C[b,m,n] = sum over k of A[b,m,k] * B[b,k,n]` on dense row-major tensors, strides in elements.
struct StridedMatmul {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  std::array<int64_t, 3> aStrides; // batch, m, k
  std::array<int64_t, 3> bStrides; // batch, k, n
  std::array<int64_t, 3> cStrides; // batch, m, n

  /// The matrix product that computes `op`; none if the dimensions that form b, m, n or k do not have a single stride.
  static std::optional<StridedMatmul> of(DotGeneralOp op);
};

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_OPS_STRIDEDMATMUL_H
