//===- LibraryEpilogue.h - Epilogues that a library computes with a product
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_FUSION_EPILOGUES_LIBRARYEPILOGUE_H
#define BOWLINE_PASSES_FUSION_EPILOGUES_LIBRARYEPILOGUE_H

#include "dialects/Graph/GraphOps.h"
#include "passes/Analysis/ModuleTarget.h"

#include <optional>

namespace bowline {

/// A group of elementwise operations on a product that nothing else reads, all of which a library computes with it: a
/// bias, GELU in its form with tanh, both, with the operand of GELU as a second result, or the gradient of GELU.
class LibraryEpilogue {
public:
  /// None where the group is no such epilogue, or the target does not compute it with this product. Without
  /// `keepsInput` GELU has no second result.
  static std::optional<LibraryEpilogue> match(graph::FusionOp group, const ModuleTarget &target, bool keepsInput);

  /// Replaces group and product by one group with the epilogue, and a bias of another type than the product by one in
  /// its type, which a group of its own rounds. The sum of product and bias is rounded once, and not in between.
  graph::FusionOp fuse();

  /// The name of the epilogue in kernels/registry/product_epilogue.h.
  llvm::StringRef name() const { return epilogue; }
  /// Traffic that the product does without, in bytes.
  int64_t savedBytes() const;

private:
  class Matcher;

  LibraryEpilogue() = default;

  graph::FusionOp group;
  graph::KernelModel product;
  llvm::StringRef epilogue;
  mlir::Value bias, input;             ///< outside of the group; null where the epilogue has none
  mlir::RankedTensorType biasType;     ///< that the library is given
  llvm::SmallVector<unsigned> outputs; ///< the group's results, in the order of the kernel's
};

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_EPILOGUES_LIBRARYEPILOGUE_H
