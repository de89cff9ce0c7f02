//===- FactorRule.h - Which dimensions of operands and results are one
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_FACTORRULE_H
#define BOWLINE_DIALECTS_GRAPH_FACTORRULE_H

#include "dialects/Graph/GraphAttrs.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace bowline::graph {

/// The index space of an operation as a product of factors, and where each factor is found in operands and results.
/// A matrix product [M x K] x [K x N] -> [M x N] has three: M and N, which are sharded in an operand and the result
/// alike, and K, whose partial results must be added.
///
/// A factor of size F can be sharded over P ranks, where P divides F: shard p of a tensor that has the factor is block
/// p of P of it (strided, where the factor is not the outermost of its dimension); a tensor that lacks it is whole on
/// every rank. Each rank computes the operation's local form: the operation on local types, unless its ShardingModel
/// says more. The shards of a result that has the factor are blocks of the whole result; the partial results of one
/// that lacks it are combined.
struct FactorRule {
  enum class Kind {
    Parallel,  ///< sharding it shards operands and results alike
    Reduction, ///< in operands only: sharding it leaves partial sums (or maxima) of every result
    Exchanged, ///< may be sharded, but ranks must exchange values: see the operation's ShardingModel
    Blocked,   ///< stays whole: a shard would need elements of the others
  };

  struct Factor {
    int64_t size;
    Kind kind;
    /// The reduction that combines partial results where a result lacks the factor. Always given for a reduction; for a
    /// parallel factor only where some results have it and others are combined: query heads that share a key head, in
    /// the gradients of attention.
    std::optional<ReduceKind> combine = std::nullopt;
  };

  /// For each dimension of a tensor, the factors that it is made of, outermost first. A dimension of size 1 may have
  /// none.
  using TensorFactors = llvm::SmallVector<llvm::SmallVector<int64_t, 1>>;

  llvm::SmallVector<Factor> factors;
  /// One entry per operand and per result; no dimensions for a value that is no tensor.
  llvm::SmallVector<TensorFactors> operands, results;

  /// Appends a factor and returns its number.
  int64_t add(int64_t size, Kind kind = Kind::Parallel, std::optional<ReduceKind> combine = std::nullopt);
  /// Appends one factor per dimension of `shape`, each of them a dimension of its own.
  TensorFactors addDims(llvm::ArrayRef<int64_t> shape, Kind kind = Kind::Parallel);

  /// Prints `([a, b], [b, c]) -> ([a, c]) {a=4, b=6 sum, c=5 blocked}`.
  void print(llvm::raw_ostream &os) const;
  std::string str() const;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const FactorRule &rule) {
  rule.print(os);
  return os;
}

/// Returns whether a tensor has the factor in one of its dimensions.
bool hasFactor(const FactorRule::TensorFactors &tensor, int64_t factor);

/// The rule of an operation whose i-th dimension is the same in all operands and results. A dimension is parallel if it
/// has equal size in all of them, and blocked if the sizes differ because the operation slices, pads or concatenates
/// it. An operand that is a scalar or not a tensor has no factor.
FactorRule alignedRule(mlir::Operation *op);

/// The rule of a reshape in row-major order. Factors common to both shapes are parallel, and the rest of a dimension is
/// blocked. [6, 4] and [8, 3] have one common factor, the outermost 2.
FactorRule reshapeRule(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

/// Checks a rule against its operation: each tensor has as many dimensions as the rule states; the size of every
/// dimension is the product of its factors; no factor is unused, or used twice in one tensor; a reduction factor states
/// how to combine partial results, and appears in no result; and each parallel factor either appears in a result or is
/// combined in it. Fails with a diagnostic at the operation.
llvm::LogicalResult verifyFactorRule(mlir::Operation *op, const FactorRule &rule);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_FACTORRULE_H
