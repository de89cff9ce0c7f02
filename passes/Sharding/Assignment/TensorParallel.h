//===- TensorParallel.h - How tensor parallelism shards a layer's parameters
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_SHARDING_ASSIGNMENT_TENSORPARALLEL_H
#define BOWLINE_PASSES_SHARDING_ASSIGNMENT_TENSORPARALLEL_H

#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

#include <functional>
#include <optional>

namespace bowline {

/// Chooses the dimension along which tensor parallelism shards each parameter that no pattern of the strategy matches
/// (Shoeybi et al., Megatron-LM, 2019). Projections into a layer's inner space are sharded along their output: each
/// rank computes some heads or columns. Projections back into the residual stream are sharded along their input, which
/// gives partial sums. Embeddings and the logits projection are sharded along the vocabulary. Others stay whole.
///
/// | role (#graph.role) | sharded along                                                                   |
/// |--------------------|---------------------------------------------------------------------------------|
/// | `vocabulary`       | the vocabulary                                                                  |
/// | `column`           | output, if the number of heads divides                                          |
/// | `keys`             | output; shared by several ranks, if there are more ranks than heads             |
/// | `fused`            | output of each of the parts, if they have one size and the number of heads divides |
/// | `row`              | input, if the number of heads divides                                           |
/// | `none`             | nothing                                                                         |
///
/// A parameter without a role, or with a role that is not in the table, stays whole, with a remark. The contraction
/// that uses a parameter tells its output from its input dimension, because some model families store weights as [out,
/// in], others as [in, out]. The dimension of a bias is output. The number of ranks must divide numbers of heads, but
/// need not divide sizes, except for quantized matrices: if it does not divide the number of blocks per row, the matrix
/// is sharded along its output instead, provided that it divides the output.
class TensorParallel {
public:
  /// \p ranks is the size of the axis. Its name \p axis is only for diagnostics. A diagnostic suggests another number
  /// of ranks only if \p allows returns true for it.
  TensorParallel(mlir::ModuleOp module, llvm::StringRef axis, int64_t ranks, std::function<bool(int64_t)> allows);

  struct Sharding {
    int64_t dim;
    /// The number of equal parts of the dimension, each of which is sharded: 3 for fused queries, keys and values,
    /// else 1.
    int64_t parts = 1;
    /// For key heads that are fewer than the ranks: the number of shards, each of which several neighbouring ranks hold
    /// as copies. Else 0.
    int64_t pieces = 0;
  };

  /// The sharding of a parameter; none if it stays whole. In that case reasons() lists the parameter, unless its role
  /// is `none`. Fails with a diagnostic if neither of the numbers of ranks and of key heads divides the other.
  llvm::FailureOr<std::optional<Sharding>> findSharding(graph::ParamOp param);

  /// Records in reasons() that the parameter stays whole after all.
  void keepWhole(graph::ParamOp param, llvm::StringRef reason) { whole[reason].push_back(param); }
  /// The reasons why parameters stay whole, for remarks, each with its parameters.
  const llvm::MapVector<llvm::StringRef, std::vector<graph::ParamOp>> &reasons() const { return whole; }

private:
  /// The use of a parameter by a contraction, or of a bias by a broadcast.
  struct Use {
    std::optional<int64_t> input; ///< dimensions of the parameter; a bias has no input
    int64_t output;
    /// The number of heads that a projection reads and that it produces; 0 if it is not from, or to, heads.
    int64_t inputHeads, outputHeads;
    bool operator==(const Use &) const = default;
  };

  static std::optional<Use> useBy(graph::Factored contraction, mlir::OpOperand &weight);
  void findUses();
  void findUses(graph::FuncOp function);
  const Use *findUse(graph::ParamOp param) const;
  llvm::StringRef reasonForNoUse(graph::ParamOp param) const;
  std::optional<Sharding> shardOutput(graph::ParamOp param, llvm::StringRef &reason) const;
  std::optional<Sharding> shardInput(graph::ParamOp param, llvm::StringRef &reason) const;
  std::optional<Sharding> shardParts(graph::ParamOp param, llvm::StringRef &reason) const;
  llvm::FailureOr<std::optional<Sharding>> shardKeys(graph::ParamOp param, llvm::StringRef &reason) const;
  llvm::FailureOr<std::optional<Sharding>> findSharding(graph::ParamOp param, llvm::StringRef &reason) const;
  std::optional<Sharding> shardRowsOfBlocks(graph::ParamOp param) const;
  std::optional<Sharding> fitBlocks(graph::ParamOp param, Sharding sharding, llvm::StringRef &reason) const;
  mlir::InFlightDiagnostic refuseKeyHeads(graph::ParamOp param, int64_t heads, int64_t keyHeads) const;

  mlir::ModuleOp module;
  std::string axis;
  int64_t ranks;
  std::function<bool(int64_t)> allows;
  llvm::StringMap<Use> uses;
  /// Parameters that functions use in different ways.
  llvm::StringSet<> ambiguous;
  /// Parameters in which rows are looked up.
  llvm::StringSet<> tables;
  llvm::MapVector<llvm::StringRef, std::vector<graph::ParamOp>> whole;
};

} // namespace bowline

#endif // BOWLINE_PASSES_SHARDING_ASSIGNMENT_TENSORPARALLEL_H
