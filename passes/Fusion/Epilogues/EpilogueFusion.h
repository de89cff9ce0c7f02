//===- EpilogueFusion.h - Elementwise work on the result of a contraction
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_FUSION_EPILOGUES_EPILOGUEFUSION_H
#define BOWLINE_PASSES_FUSION_EPILOGUES_EPILOGUEFUSION_H

#include "dialects/Graph/GraphOps.h"

#include <optional>

namespace bowline {

/// A group of elementwise operations that can become the epilogue of a contraction, computed on tiles of its result
/// while these are in the cache. The contraction is one matrix product. Each value of the group has the shape of the
/// product, [M, N], where M and N may each be several dimensions; or it is broadcast along rows, columns or both.
class EpilogueFusion {
public:
  /// Matches `group` as the epilogue of a contraction that it reads, the last one if it reads several. None if the
  /// group has other work than elementwise work of that shape, or if an operation before the group uses the product.
  static std::optional<EpilogueFusion> match(graph::FusionOp group);

  /// Moves an operation that could be an epilogue and whose result is stored anyway, such as a residual addition before
  /// a norm, out of `group`, which does more than elementwise work. Returns the operation's new group, or null.
  static graph::FusionOp peel(graph::FusionOp group);

  /// Replaces group and contraction by one group whose first operation is the contraction.
  graph::FusionOp fuse();

  /// The memory traffic that the fusion saves, in bytes.
  int64_t savedBytes() const;
  /// The number of operations in the group.
  int64_t operationCount() const;

private:
  EpilogueFusion(graph::FusionOp group, mlir::Operation *product) : group(group), product(product) {}

  graph::FusionOp group;
  mlir::Operation *product;
};

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_EPILOGUES_EPILOGUEFUSION_H
