//===- KernelDeclarations.h - One plan.kernel per distinct kernel
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_FUSION_SELECTION_KERNELDECLARATIONS_H
#define BOWLINE_PASSES_FUSION_SELECTION_KERNELDECLARATIONS_H

#include "dialects/Graph/GraphOps.h"
#include "dialects/Plan/PlanOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Analysis/ModuleTarget.h"
#include "llvm/ADT/StringMap.h"

namespace bowline {

/// Declares the kernels that a module calls, each distinct one once.
class KernelDeclarations {
public:
  /// The workspace of registered kernels is sized for launches with `threads` threads.
  KernelDeclarations(mlir::ModuleOp module, ModuleTarget target, int64_t threads);

  /// The kernel of the registry that computes `model`, specialised on `config` (integers, integer lists, floats,
  /// texts), for `user`, which is the model or holds it. The model states the kernel's cost. `arguments` has no
  /// scratch; the kernel gets a last scratch argument if it needs one. Fails with a diagnostic at `user` if the
  /// registry has no such kernel or refuses the signature.
  llvm::FailureOr<plan::KernelOp> registered(mlir::Operation *user, graph::KernelModel model,
                                             mlir::DictionaryAttr config, llvm::ArrayRef<plan::ArgumentAttr> arguments);

  /// A kernel of the registry whose first operands are those of the contraction in `fusion`, which EpilogueFusion made,
  /// with generated code for the operations of the fusion after it.
  llvm::FailureOr<plan::KernelOp> withEpilogue(graph::FusionOp fusion, llvm::StringRef name,
                                               mlir::DictionaryAttr config);

  /// A kernel of the registry that computes all of `fusion`, which has the epilogue of a library.
  llvm::FailureOr<plan::KernelOp> withLibraryEpilogue(graph::FusionOp fusion);

  /// A kernel generated from the body of `fusion`.
  plan::KernelOp generated(graph::FusionOp fusion);

private:
  /// The cost of one launch: floating-point operations, and bytes read and written.
  struct Cost {
    double flops, bytes;
  };

  /// The content of `fusion`, without names and places.
  static std::string contentOf(graph::FusionOp fusion);
  /// Sets the properties that a kernel of the registry has besides its epilogue.
  llvm::LogicalResult describe(plan::KernelOp kernel, mlir::Operation *user, llvm::StringRef name,
                               mlir::DictionaryAttr config, llvm::ArrayRef<plan::ArgumentAttr> arguments,
                               const Cost &cost);
  plan::KernelOp declare(llvm::StringRef baseName, mlir::Location loc);

  mlir::ModuleOp module;
  ModuleTarget target;
  int64_t threads;
  llvm::StringMap<plan::KernelOp> byContent;
  llvm::StringMap<unsigned> nameCounts;
  /// Kernels stand before the first function, in the order in which they were first needed.
  mlir::OpBuilder builder;
};

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_SELECTION_KERNELDECLARATIONS_H
