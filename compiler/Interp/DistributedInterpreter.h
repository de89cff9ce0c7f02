//===- DistributedInterpreter.h - Reference execution of the programs of all ranks
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_INTERP_DISTRIBUTEDINTERPRETER_H
#define BOWLINE_COMPILER_INTERP_DISTRIBUTEDINTERPRETER_H

#include "compiler/Interp/Interpreter.h"
#include "compiler/Interp/RankGrid.h"

#include <optional>

namespace bowline {

/// Runs a module of local tensors on every rank of its mesh, operation by operation and in lockstep. Callers pass and
/// get global tensors: arguments are divided by their `dist.sharding`, and variables are divided and joined by their
/// dist::Layout.
class DistributedInterpreter {
public:
  using HostTensor = graph::HostTensor;
  using Tensors = Interpreter::Tensors;

  /// `module` must have a mesh, be verified and outlive the interpreter. With `fixedAxis`, the interpreter has only the
  /// ranks with one coordinate along that axis.
  explicit DistributedInterpreter(mlir::ModuleOp module, llvm::StringRef fixedAxis = {},
                                  const graph::Arithmetic &arithmetic = graph::Arithmetic::reals());

  int64_t getRankCount() const { return static_cast<int64_t>(ranks.size()); }

  /// Runs the entry of kind `init` on every rank. Fails with a diagnostic where the module has none.
  llvm::LogicalResult initialize();

  /// Returns the global value of a variable, like that of a checkpoint. Adds partial sums that ranks hold. Fails with a
  /// diagnostic where ranks should hold equal pieces but do not, or where padding is not zero.
  llvm::FailureOr<HostTensor> getVariable(llvm::StringRef name);
  llvm::LogicalResult setVariable(llvm::StringRef name, const HostTensor &value);
  /// Returns the value that rank `rank`, counted from 0, holds of a variable; null if the variable does not exist or
  /// has no value yet.
  const HostTensor *getLocal(int64_t rank, llvm::StringRef name) const { return ranks[rank].getVariable(name); }

  /// Sets every accumulator to its initial value. Call before each run of an entry.
  void clearAccumulators();

  /// Runs a function or an entry like Interpreter::run, with global arguments. Fails with a diagnostic if their number
  /// is wrong or ranks return different results.
  llvm::FailureOr<Tensors> run(llvm::StringRef name, llvm::ArrayRef<HostTensor> arguments);

private:
  friend class PipelinedInterpreter;
  using Environments = std::vector<Interpreter::Environment>;

  /// Fails with a diagnostic if ranks return different results of \p callee. `results` are by rank.
  static llvm::LogicalResult verifySame(mlir::Operation *callee, llvm::ArrayRef<Tensors> results);
  /// Returns the slice of an argument for one of `repeat` repetitions.
  static HostTensor sliceOf(const HostTensor &argument, int64_t repetition, int64_t repeat);
  /// Divides the global arguments of a function among the ranks.
  std::vector<Tensors> divide(graph::FuncOp function, llvm::ArrayRef<HostTensor> arguments) const;
  llvm::FailureOr<std::vector<Tensors>> runFunction(graph::FuncOp function, const std::vector<Tensors> &arguments);
  llvm::LogicalResult execute(mlir::Operation *op, Environments &environments);
  llvm::LogicalResult executeCollective(mlir::Operation *op, Environments &environments);
  /// Computes result `index` of a dist operation on one rank alone; nothing if the operation needs other ranks.
  std::optional<HostTensor> collect(mlir::Operation *op, unsigned index, int64_t rank,
                                    const Environments &environments) const;

  /// Computes result `index` of a collective for the rank at `place` of its group, whose operands are `group`.
  HostTensor exchange(dist::Collective op, unsigned index, llvm::ArrayRef<const HostTensor *> group,
                      int64_t place) const;

  /// Reduces the values of a group in the order of its ranks.
  HostTensor combine(llvm::ArrayRef<const HostTensor *> values, dist::ReduceKind kind, mlir::Type element) const;

  mlir::ModuleOp module;
  const graph::Arithmetic *arithmetic;
  RankGrid grid;
  mlir::SymbolTable symbols;
  std::vector<Interpreter> ranks;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_DISTRIBUTEDINTERPRETER_H
