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

/// A group of elementwise operations that can be computed on tiles of a contraction's result while these are in the
/// cache. The contraction is one matrix product, and everything in the group has the shape of its result: [M, N] with
/// several dimensions standing for each, or is repeated along the rows, the columns or both.
class EpilogueFusion {
public:
  /// The contraction that `group` can be the epilogue of: the last one if there are several. None where the group does
  /// anything else than elementwise work of that shape, or where the contraction's result is needed before the group.
  static std::optional<EpilogueFusion> match(graph::FusionOp group);

  /// Moves out of `group`, which does more than elementwise work, an operation that could be an epilogue and whose
  /// result is stored anyway: a residual addition in front of a norm. Returns its own group; null if there is none.
  static graph::FusionOp peel(graph::FusionOp group);

  /// Replaces group and contraction by one group whose first operation is the contraction.
  graph::FusionOp fuse();

  /// Traffic that the epilogue does without, in bytes.
  int64_t savedBytes() const;
  /// How many operations the group had.
  int64_t operationCount() const;

private:
  EpilogueFusion(graph::FusionOp group, mlir::Operation *product) : group(group), product(product) {}

  graph::FusionOp group;
  mlir::Operation *product;
};

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_EPILOGUES_EPILOGUEFUSION_H
