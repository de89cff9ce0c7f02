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

/// A group of elementwise operations that a library can compute together with a product that only the group reads. The
/// group is a bias, tanh-GELU, both of these with GELU's operand as an optional second result, or GELU's gradient.
class LibraryEpilogue {
public:
  /// Returns none if the group is no such epilogue, or if the target's library lacks it for this product. `keepsInput`
  /// allows the operand of GELU as a second result.
  static std::optional<LibraryEpilogue> match(graph::FusionOp group, const ModuleTarget &target, bool keepsInput);

  /// Replaces group and product by one group with the epilogue. Converts a bias of another type to the product's type,
  /// in a new group. The product is not rounded before the bias is added.
  graph::FusionOp fuse();

  /// The name of the epilogue in kernels/registry/product_epilogue.h.
  llvm::StringRef name() const { return epilogue; }
  /// The memory traffic that the epilogue saves, in bytes.
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
