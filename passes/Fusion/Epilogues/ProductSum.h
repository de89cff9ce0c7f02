//===- ProductSum.h - Sums over the dimensions that a product sums over
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_FUSION_EPILOGUES_PRODUCTSUM_H
#define BOWLINE_PASSES_FUSION_EPILOGUES_PRODUCTSUM_H

#include "dialects/Graph/GraphOps.h"
#include "passes/Analysis/ModuleTarget.h"

#include <optional>

namespace bowline {

/// The sum of a contraction's operand over the contracted dimensions, such as the gradient of a bias next to the
/// gradient of its weights. A library can compute the sum while its product reads the operand.
class ProductSum {
public:
  /// None where no contraction fits, or the target does not compute the sum with it.
  static std::optional<ProductSum> match(graph::ReduceOp sum, const ModuleTarget &target);

  /// Replaces sum and contraction by one group with the epilogue, where the later of them stands.
  graph::FusionOp fuse();

  /// The name of the epilogue in kernels/registry/product_epilogue.h.
  llvm::StringRef name() const { return epilogue; }

private:
  ProductSum(graph::ReduceOp sum, graph::KernelModel product, llvm::StringRef epilogue)
      : sum(sum), product(product), epilogue(epilogue) {}

  graph::ReduceOp sum;
  graph::KernelModel product;
  llvm::StringRef epilogue;
};

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_EPILOGUES_PRODUCTSUM_H
