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

/// Executes the computation of `plan.kernel` operations: the body of a generated kernel; for a registered kernel the
/// body that its selecting operation builds from its configuration, then that of its epilogue. A packed matrix is kept
/// unpacked, row-major at the start of its buffer, because only kernels know the packed order.
class KernelInterpreter {
public:
  using HostTensor = graph::HostTensor;
  using Tensors = llvm::SmallVector<HostTensor>;

  /// `arithmetic` must outlive the interpreter.
  explicit KernelInterpreter(const graph::Arithmetic &arithmetic) : arithmetic(&arithmetic) {}

  /// Computes the arguments that a kernel writes from those that it reads, `operands`, in the order of
  /// its arguments and without workspace. Results have the arguments' shapes. `body` is the kernel's
  /// function, also after code generation; null if it has none. Fails with a diagnostic at `user` if the
  /// kernel or its values have no meaning.
  llvm::FailureOr<Tensors> run(mlir::Operation *user, plan::KernelOp kernel, mlir::func::FuncOp body,
                               llvm::ArrayRef<HostTensor> operands);

private:
  llvm::FailureOr<mlir::Block *> operationOf(mlir::Operation *user, plan::KernelOp kernel);

  const graph::Arithmetic *arithmetic;
  /// For each registered kernel: a function with the graph operations that it stands for.
  llvm::DenseMap<mlir::Operation *, mlir::OwningOpRef<mlir::func::FuncOp>> operations;
};

/// Executes a block whose operations use no variables, and returns the operands of its terminator. Fails with a
/// diagnostic at the first operation without reference semantics or without a defined result.
llvm::FailureOr<llvm::SmallVector<graph::HostTensor>>
interpretBlock(mlir::Block &body, llvm::ArrayRef<graph::HostTensor> arguments, const graph::Arithmetic &arithmetic);

/// Executes one operation that uses no variables, in the same way.
llvm::FailureOr<llvm::SmallVector<graph::HostTensor>> interpretOperation(mlir::Operation *op,
                                                                         llvm::ArrayRef<graph::HostTensor> operands,
                                                                         const graph::Arithmetic &arithmetic);

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_KERNELINTERPRETER_H
