//===- ProductCall.h - A product with the epilogue of a library, as a kernel
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_FUSION_EPILOGUES_PRODUCTCALL_H
#define BOWLINE_PASSES_FUSION_EPILOGUES_PRODUCTCALL_H

#include "dialects/Graph/GraphOps.h"
#include "dialects/Plan/PlanOps.h"
#include "passes/Analysis/ModuleTarget.h"

namespace bowline {

/// A call of a registered kernel that computes a product together with a library's epilogue.
struct ProductCall {
  llvm::StringRef kernel;
  mlir::DictionaryAttr config;
  llvm::SmallVector<plan::ArgumentAttr> arguments; ///< without workspace

  /// Returns whether the target's library has this epilogue for products of these types and sizes.
  bool isComputedBy(const ModuleTarget &target) const;
};

/// The call for `fusion`, which has an epilogue of a library.
ProductCall productCallOf(graph::FusionOp fusion);

/// The call for `contraction`, which takes epilogues, with operands and results in the order of kernel arguments.
ProductCall productCallOf(graph::KernelModel contraction, llvm::StringRef epilogue, mlir::TypeRange operands,
                          mlir::TypeRange results);

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_EPILOGUES_PRODUCTCALL_H
