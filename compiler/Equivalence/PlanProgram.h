//===- PlanProgram.h - Programs of commands, seen from outside ---*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EQUIVALENCE_PLANPROGRAM_H
#define BOWLINE_COMPILER_EQUIVALENCE_PLANPROGRAM_H

#include "compiler/Equivalence/RunnableProgram.h"
#include "compiler/Interp/PlanInterpreter.h"

namespace bowline {

/// The commands of all ranks. Variables are the tensors of checkpoints; accumulators are ordinary memory.
class PlanProgram final : public RunnableProgram {
public:
  /// Returns whether the roles of `module` are programs of commands.
  static bool matches(mlir::ModuleOp module);

  /// `module` must have a mesh. Fails with a diagnostic if the arithmetic cannot represent a constant.
  static llvm::FailureOr<std::unique_ptr<RunnableProgram>>
  create(mlir::OwningOpRef<mlir::ModuleOp> module, const KernelBodies &bodies, const graph::Arithmetic &arithmetic);

  llvm::FailureOr<HostTensor> getVariable(llvm::StringRef name) override { return interpreter.getVariable(name); }
  llvm::LogicalResult setVariable(llvm::StringRef name, const HostTensor &value) override {
    return interpreter.setVariable(name, value);
  }
  llvm::FailureOr<llvm::SmallVector<HostTensor>> run(llvm::StringRef name, const Inputs &inputs) override {
    return interpreter.run(name, inputs);
  }

private:
  llvm::LogicalResult runInit() override;

  PlanProgram(mlir::OwningOpRef<mlir::ModuleOp> module, const KernelBodies &bodies,
              const graph::Arithmetic &arithmetic);

  void addStates(mlir::ModuleOp role, const RankGrid &grid);
  void addEntries(mlir::ModuleOp role, const RankGrid &grid);
  /// Returns the callable for the entries of this name in all roles.
  Callable &callableOf(llvm::StringRef entry);
  static double workOfEntries(mlir::ModuleOp role);

  PlanInterpreter interpreter;
  std::string initEntry; ///< name of the entry of kind init; empty if there is none
};

} // namespace bowline

#endif // BOWLINE_COMPILER_EQUIVALENCE_PLANPROGRAM_H
