//===- ShardingState.h - The shardings of a module's values while they are decided
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_SHARDINGSTATE_H
#define BOWLINE_PASSES_ANALYSIS_SHARDINGSTATE_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/FactorRule.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace bowline {

/// Mesh axes that shard something, the first one outermost.
using Axes = llvm::SmallVector<mlir::StringAttr, 2>;

/// An attribute of an operation with `dist.shardings` that names who asked for them, for messages. It is removed when
/// all shardings are known.
inline constexpr llvm::StringLiteral kOriginAttr = "dist.origin";
inline constexpr llvm::StringLiteral kSequenceParallelism = "sequence parallelism";

/// How one tensor is sharded, before this becomes an attribute.
struct TensorSharding {
  struct Dim {
    Axes axes;
    bool open = true;
    /// The cause of the sharding, for messages: a pattern of the strategy, or the operation that propagated it.
    std::string origin;
  };
  llvm::SmallVector<Dim> dims;
  Axes unreduced;

  bool uses(mlir::StringAttr axis) const;
  dist::ShardingAttr toAttr(mlir::MLIRContext *context) const;
  static TensorSharding from(dist::ShardingAttr sharding, llvm::StringRef origin);
  static TensorSharding open(int64_t rank);
};

/// The factor rule of an operation on tensors: its own, or for a write that of an identity. None for operations without
/// tensors.
std::optional<graph::FactorRule> factorRuleOf(mlir::Operation *op);

/// Whether the operation, applied to the ranks' summands, gives summands of its result.
bool isAdditive(mlir::Operation *op);
/// Whether the operation adds up elements or finds their maximum, so that its results may be partial ones that are
/// still to be combined.
bool reduces(mlir::Operation *op);

/// Whether the value is a constant of equal elements. Every sharding of it is free, so it has none.
bool isFreeConstant(mlir::Value value);

/// The shardings of all values and variables of a module. Reads of a variable share its sharding.
class ShardingState {
public:
  /// Starts from the shardings that variables, arguments and operations have; all other shardings are open.
  explicit ShardingState(mlir::ModuleOp module, dist::MeshOp mesh);

  /// The sharding of a value, created open; for a read, that of its variable. Null for a free constant and for a value
  /// that is no tensor.
  TensorSharding *find(mlir::Value value);
  /// The sharding of a parameter or state.
  TensorSharding *find(llvm::StringRef variable);
  /// The shardings of the operands of `op` as its factor rule counts them; for a write, those of the value and of the
  /// variable.
  llvm::SmallVector<TensorSharding *> operandShardings(mlir::Operation *op);
  llvm::SmallVector<TensorSharding *> resultShardings(mlir::Operation *op);

  /// Puts every sharding into the IR: `dist.sharding` of variables and arguments, `dist.shardings` of operations.
  void annotate();

  mlir::ModuleOp module;
  dist::MeshOp mesh;

private:
  void seed(mlir::Operation *op);

  llvm::DenseMap<mlir::Value, std::unique_ptr<TensorSharding>> values;
  llvm::StringMap<std::unique_ptr<TensorSharding>> variables;
};

/// The axes that shard each factor of one operation.
class FactorAxes {
public:
  /// Collects the proposals of an operation's tensors. Where proposals disagree, closed dimensions win over open ones,
  /// then the longer over its prefix, then the earlier tensor. One axis shards one factor: among those for which closed
  /// dimensions propose it, or else among the others, one that is no reduction, if there is one.
  FactorAxes(const graph::FactorRule &rule, dist::MeshOp mesh, llvm::ArrayRef<TensorSharding *> operands,
             llvm::ArrayRef<TensorSharding *> results);

  const Axes &operator[](int64_t factor) const { return axes[factor]; }
  const std::string &origin(int64_t factor) const { return origins[factor]; }

  /// The axes of each dimension of a tensor with these factors.
  llvm::SmallVector<Axes> project(const graph::FactorRule::TensorFactors &tensor) const;
  /// The axes over which a result with these factors is a partial sum (or maximum).
  Axes combined(const graph::FactorRule &rule, const graph::FactorRule::TensorFactors &result) const;

private:
  /// Drops axes of inner factors of a dimension unless the outer factors are sharded completely: otherwise the shards
  /// of the dimension would not be contiguous. Returns whether it dropped any.
  bool dropBehindWholeFactors(const graph::FactorRule &rule, dist::MeshOp mesh,
                              const graph::FactorRule::TensorFactors &tensor);

  llvm::SmallVector<Axes> axes;
  llvm::SmallVector<std::string> origins;
};

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_SHARDINGSTATE_H
