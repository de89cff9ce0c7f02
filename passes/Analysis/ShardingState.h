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

/// An attribute of an operation with `dist.shardings` that names, for messages, the choice that caused these shardings.
/// It is removed once all shardings are decided.
inline constexpr llvm::StringLiteral kOriginAttr = "dist.origin";
inline constexpr llvm::StringLiteral kSequenceParallelism = "sequence parallelism";

/// The sharding of one tensor while propagation may still change it.
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

/// The factor rule of an operation on tensors. A write has the rule of an identity from its value to its variable. None
/// for operations without tensors.
std::optional<graph::FactorRule> factorRuleOf(mlir::Operation *op);

/// Returns whether the operation, applied to the ranks' summands, gives summands of its result.
bool isAdditive(mlir::Operation *op);
/// Returns whether the operation sums elements or takes their maximum, so that a rank's results may be partial and must
/// be combined with those of other ranks.
bool reduces(mlir::Operation *op);

/// Whether the value is a constant of equal elements. It can take any sharding at no cost, so the state records none.
bool isFreeConstant(mlir::Value value);

/// The shardings of all values and variables of a module. Reads of a variable share its sharding.
class ShardingState {
public:
  /// Starts from the shardings that variables, arguments and operations have; all other shardings are open.
  explicit ShardingState(mlir::ModuleOp module, dist::MeshOp mesh);

  /// The sharding of a value, created open on first use; for a read, the sharding of its variable. Null for a free
  /// constant and for a value that is not a tensor.
  TensorSharding *find(mlir::Value value);
  /// The sharding of a parameter or state.
  TensorSharding *find(llvm::StringRef variable);
  /// The shardings of the operands of `op`, in the order of its factor rule. For a write, these are the shardings of
  /// the value and of the variable.
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
  /// Each dimension of the operation's tensors proposes axes for its factors. Between different proposals for a factor,
  /// closed dimensions win over open ones, then a longer list over its prefix, then the earlier tensor. An axis shards
  /// only one factor; factors proposed by closed dimensions are preferred, and among these one that is no reduction.
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
