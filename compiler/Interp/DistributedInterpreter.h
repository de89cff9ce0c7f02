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
#include "dialects/Dist/Layout.h"

#include <optional>

namespace bowline {

/// Runs a module of local tensors on every rank of its mesh, operation by operation, all ranks in step. Callers see
/// global tensors: arguments are cut by their `dist.sharding`, variables cut and joined by their dist::Layout.
class DistributedInterpreter {
public:
  using HostTensor = graph::HostTensor;
  using Tensors = Interpreter::Tensors;

  /// `module` has a mesh, is verified and outlives the interpreter.
  /// With `fixedAxis`, it has the ranks of one coordinate along that axis alone.
  explicit DistributedInterpreter(mlir::ModuleOp module, llvm::StringRef fixedAxis = {},
                                  const Arithmetic &arithmetic = Arithmetic::reals());

  int64_t getRankCount() const { return static_cast<int64_t>(ranks.size()); }

  /// Runs `@init` on every rank. Fails with a diagnostic where the module has none.
  llvm::LogicalResult initialize();

  /// A variable of all ranks, as a checkpoint has it. Fails with a diagnostic where ranks that should hold equal pieces
  /// do not, or where padding is not zero. A variable that is a sum of parts is added up.
  llvm::FailureOr<HostTensor> getVariable(llvm::StringRef name);
  llvm::LogicalResult setVariable(llvm::StringRef name, const HostTensor &value);
  /// What one rank holds of a variable, from 0; null if there is no such variable or it has no value yet.
  const HostTensor *getLocal(int64_t rank, llvm::StringRef name) const { return ranks[rank].getVariable(name); }

  /// Gives every accumulator its initial value, as before each run of an entry.
  void clearAccumulators();

  /// As Interpreter::run, with global arguments. Fails with a diagnostic where two ranks return different results.
  llvm::FailureOr<Tensors> run(llvm::StringRef name, llvm::ArrayRef<HostTensor> arguments);

private:
  friend class PipelinedInterpreter;
  using Axes = llvm::SmallVector<mlir::StringAttr>;
  using Environments = std::vector<Interpreter::Environment>;

  /// One repetition's slice of an argument.
  static HostTensor sliceOf(const HostTensor &argument, int64_t repetition, int64_t repeat);
  /// What each rank has of a function's arguments.
  std::vector<Tensors> divide(graph::FuncOp function, llvm::ArrayRef<HostTensor> arguments) const;
  llvm::FailureOr<std::vector<Tensors>> runFunction(graph::FuncOp function, const std::vector<Tensors> &arguments);
  llvm::LogicalResult execute(mlir::Operation *op, Environments &environments);
  llvm::LogicalResult executeCollective(mlir::Operation *op, Environments &environments);
  /// Result `index` of a collective on one rank; none for what is no collective.
  std::optional<HostTensor> collect(mlir::Operation *op, unsigned index, int64_t rank,
                                    const Environments &environments) const;

  /// The values of a group combined, in the order of its ranks.
  HostTensor combine(llvm::ArrayRef<const HostTensor *> values, dist::ReduceKind kind, mlir::Type element) const;

  /// The number of ranks along `axes`.
  int64_t sizeOf(llvm::ArrayRef<mlir::StringAttr> axes) const;
  /// Position of `rank` among the ranks that differ from it only along `axes`, the first axis outermost.
  int64_t placeOf(int64_t rank, llvm::ArrayRef<mlir::StringAttr> axes) const;
  /// The ranks of that group, by place.
  llvm::SmallVector<int64_t> groupOf(int64_t rank, llvm::ArrayRef<mlir::StringAttr> axes) const;
  /// `axes` may be empty for a tensor that is whole everywhere.
  HostTensor pieceOf(const HostTensor &whole, llvm::ArrayRef<Axes> axes, int64_t rank) const;
  /// The part of its piece that a rank keeps: all of it, or a flat shard.
  HostTensor shardOf(HostTensor piece, const dist::Layout &layout, int64_t rank) const;
  /// The piece of a variable that this rank has, or has a shard of.
  llvm::FailureOr<HostTensor> joinShards(mlir::Operation *variable, const dist::Layout &layout, int64_t rank) const;
  /// The padded view of a variable.
  llvm::FailureOr<HostTensor> join(mlir::Operation *variable, const dist::Layout &layout) const;

  mlir::ModuleOp module;
  const Arithmetic *arithmetic;
  dist::MeshOp mesh;
  llvm::SmallVector<int64_t> sizes; ///< of the mesh, 1 for the fixed axis
  mlir::SymbolTable symbols;
  std::vector<Interpreter> ranks;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_DISTRIBUTEDINTERPRETER_H
