//===- CollectiveChunking.h - Products and the collectives beside them, in chunks of rows
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_COLLECTIVES_COLLECTIVECHUNKING_H
#define BOWLINE_PASSES_LOCAL_COLLECTIVES_COLLECTIVECHUNKING_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "targets/costs/cost_model.h"

namespace bowline {

/// Divides a matrix product and its collective into chunks along the first dimension, so that the collective of one
/// chunk can run beside the product of another (Wang et al., "Overlap Communication with Dependent Computation via
/// Decomposition", 2023). It divides a product followed by an all-reduce or reduce-scatter, and a gather followed by
/// the products that read it. Each element is the same sum of the same terms. Slicing and concatenating chunks
/// costs copies.
///
/// The first dimension must be a free dimension of the product's left operand, and not the dimension along which the
/// collective gathers or scatters.
class CollectiveChunking {
public:
  /// \p chunks is the number of chunks; if it does not divide the number of rows, the largest smaller divisor is used.
  /// With 0 the cost model chooses the fastest number from 1 to 8.
  CollectiveChunking(dist::MeshOp mesh, int64_t chunks, targets::CostModel model)
      : mesh(mesh), chunks(chunks), model(std::move(model)) {}

  /// Divides the pairs of a block and returns their number.
  int64_t run(mlir::Block &block);

  /// The number of pairs with enough rows for several chunks, divided or not.
  int64_t countPairs() const { return pairs; }

private:
  bool divideProduct(mlir::Operation *collective);
  bool divideGather(dist::AllGatherOp gather);
  int64_t chooseChunks(int64_t rows, double flops, double wholeBytes, double copiedBytes, mlir::ArrayAttr axes,
                       const collectives::Definition &collective);

  dist::MeshOp mesh;
  int64_t chunks, pairs = 0;
  targets::CostModel model;
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_COLLECTIVES_COLLECTIVECHUNKING_H
