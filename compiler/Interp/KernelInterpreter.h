//===- KernelInterpreter.h - Reference execution of kernels ------*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_INTERP_KERNELINTERPRETER_H
#define BOWLINE_COMPILER_INTERP_KERNELINTERPRETER_H

#include "dialects/Graph/Arithmetic.h"
#include "dialects/Graph/HostTensor.h"
#include "dialects/Plan/PlanOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace bowline {

/// Runs the computation that `plan.kernel` operations stand for: a generated kernel's body; for a registered one the
/// body that the selecting operation builds from its configuration, and then the body of its epilogue. A packed matrix
/// is the same matrix, row-major at the start of its buffer: only kernels know the order that they pack in.
class KernelInterpreter {
public:
  using HostTensor = graph::HostTensor;
  using Tensors = llvm::SmallVector<HostTensor>;

  /// The arithmetic must outlive the interpreter.
  explicit KernelInterpreter(const graph::Arithmetic &arithmetic) : arithmetic(&arithmetic) {}

  /// Computes the results of a kernel, in the order of the arguments that it writes and of their shapes, from those
  /// that it reads; both without workspace. `body` is the function that the kernel names, or named before code was
  /// generated; null if it has none. Fails with a diagnostic at `user` where the kernel has no meaning or its values
  /// have none.
  llvm::FailureOr<Tensors> run(mlir::Operation *user, plan::KernelOp kernel, mlir::func::FuncOp body,
                               llvm::ArrayRef<HostTensor> operands);

private:
  llvm::FailureOr<mlir::Block *> operationOf(mlir::Operation *user, plan::KernelOp kernel);

  const graph::Arithmetic *arithmetic;
  /// For each registered kernel, a function with the graph operations that it stands for.
  llvm::DenseMap<mlir::Operation *, mlir::OwningOpRef<mlir::func::FuncOp>> operations;
};

/// Executes operations that touch no variable, given the block's arguments; returns the operands of its terminator.
/// Fails with a diagnostic at the first operation without a reference semantics or a defined result.
llvm::FailureOr<llvm::SmallVector<graph::HostTensor>>
interpretBlock(mlir::Block &body, llvm::ArrayRef<graph::HostTensor> arguments, const graph::Arithmetic &arithmetic);

/// Executes one such operation.
llvm::FailureOr<llvm::SmallVector<graph::HostTensor>> interpretOperation(mlir::Operation *op,
                                                                         llvm::ArrayRef<graph::HostTensor> operands,
                                                                         const graph::Arithmetic &arithmetic);

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_KERNELINTERPRETER_H
