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

/// Propagates the shardings of a state along the factor rules of all operations, forward and backward, to a fixed
/// point. It terminates because it only adds axes, and only to open dimensions. If an operation's tensors have
/// conflicting shardings, none of them changes; ReshardInsertion later puts a reshard between them.
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
