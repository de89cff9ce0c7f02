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

/// Runs a module of local tensors on every rank of its mesh, operation by operation, all ranks in step. Callers see
/// global tensors: arguments are sharded by their `dist.sharding`, variables are sharded and joined by their
/// dist::Layout.
class DistributedInterpreter {
public:
  using HostTensor = graph::HostTensor;
  using Tensors = Interpreter::Tensors;

  /// `module` must have a mesh, be verified and outlive the interpreter. With `fixedAxis`, the interpreter has the
  /// ranks of one coordinate along that axis alone.
  explicit DistributedInterpreter(mlir::ModuleOp module, llvm::StringRef fixedAxis = {},
                                  const graph::Arithmetic &arithmetic = graph::Arithmetic::reals());

  int64_t getRankCount() const { return static_cast<int64_t>(ranks.size()); }

  /// Runs the entry of kind `init` on every rank. Fails with a diagnostic where the module has none.
  llvm::LogicalResult initialize();

  /// A variable of all ranks, as a checkpoint has it. Fails with a diagnostic where ranks that should hold equal pieces
  /// do not, or where padding is not zero. Partial sums that ranks hold of a variable are added.
  llvm::FailureOr<HostTensor> getVariable(llvm::StringRef name);
  llvm::LogicalResult setVariable(llvm::StringRef name, const HostTensor &value);
  /// The value that rank number `rank`, counted from 0, holds of a variable; null if there is no such variable or it
  /// has no value yet.
  const HostTensor *getLocal(int64_t rank, llvm::StringRef name) const { return ranks[rank].getVariable(name); }

  /// Gives every accumulator its initial value, as before each run of an entry.
  void clearAccumulators();

  /// Runs a function or an entry as Interpreter::run does, with global arguments. Fails with a diagnostic where their
  /// number is wrong or two ranks return different results.
  llvm::FailureOr<Tensors> run(llvm::StringRef name, llvm::ArrayRef<HostTensor> arguments);

private:
  friend class PipelinedInterpreter;
  using Environments = std::vector<Interpreter::Environment>;

  /// Fails with a diagnostic where ranks, in order, return different results of \p callee.
  static llvm::LogicalResult verifySame(mlir::Operation *callee, llvm::ArrayRef<Tensors> results);
  /// The slice of an argument that belongs to one of `repeat` repetitions.
  static HostTensor sliceOf(const HostTensor &argument, int64_t repetition, int64_t repeat);
  /// The arguments of each rank, from the global arguments of a function.
  std::vector<Tensors> divide(graph::FuncOp function, llvm::ArrayRef<HostTensor> arguments) const;
  llvm::FailureOr<std::vector<Tensors>> runFunction(graph::FuncOp function, const std::vector<Tensors> &arguments);
  llvm::LogicalResult execute(mlir::Operation *op, Environments &environments);
  llvm::LogicalResult executeCollective(mlir::Operation *op, Environments &environments);
  /// Result `index` of an operation of dist on one rank; none for an operation without a meaning on one rank.
  std::optional<HostTensor> collect(mlir::Operation *op, unsigned index, int64_t rank,
                                    const Environments &environments) const;

  /// Result `index` of a collective on the rank at `place` in its group, from the values of the group.
  HostTensor exchange(dist::Collective op, unsigned index, llvm::ArrayRef<const HostTensor *> group,
                      int64_t place) const;

  /// Combines the values of a group, in the order of its ranks.
  HostTensor combine(llvm::ArrayRef<const HostTensor *> values, dist::ReduceKind kind, mlir::Type element) const;

  mlir::ModuleOp module;
  const graph::Arithmetic *arithmetic;
  RankGrid grid;
  mlir::SymbolTable symbols;
  std::vector<Interpreter> ranks;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_DISTRIBUTEDINTERPRETER_H
