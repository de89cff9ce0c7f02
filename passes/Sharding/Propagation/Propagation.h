//===- Propagation.h - From a few shardings to those of all values
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_SHARDING_PROPAGATION_PROPAGATION_H
#define BOWLINE_PASSES_SHARDING_PROPAGATION_PROPAGATION_H

#include "passes/Analysis/ShardingState.h"

namespace bowline {

/// Extends the shardings of a state along the factor rules of all operations, forward and backward, until nothing
/// changes. Axes are only added, and only to open dimensions, so that it ends. Where two neighbours disagree, both stay
/// as they are: a reshard will stand between them.
class Propagation {
public:
  explicit Propagation(ShardingState &state);
  void run();

private:
  struct Node {
    graph::FactorRule rule;
    llvm::SmallVector<TensorSharding *> operands, results;
  };

  bool visit(const Node &node);
  bool extend(TensorSharding &sharding, const graph::FactorRule::TensorFactors &tensor, const FactorAxes &axes);

  ShardingState &state;
  std::vector<Node> nodes;
};

} // namespace bowline

#endif // BOWLINE_PASSES_SHARDING_PROPAGATION_PROPAGATION_H
