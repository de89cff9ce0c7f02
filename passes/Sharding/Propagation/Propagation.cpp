//===- Propagation.cpp - From a few shardings to those of all values
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/Propagation/Propagation.h"

using namespace mlir;
using namespace bowline;

Propagation::Propagation(ShardingState &state) : state(state) {
  state.module.walk([&](Operation *op) {
    if (std::optional<graph::FactorRule> rule = factorRuleOf(op))
      nodes.push_back({std::move(*rule), state.operandShardings(op), state.resultShardings(op)});
  });
}

void Propagation::run() {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Node &node : nodes)
      changed |= visit(node);
    for (const Node &node : llvm::reverse(nodes))
      changed |= visit(node);
  }
}

bool Propagation::visit(const Node &node) {
  FactorAxes axes(node.rule, state.mesh, node.operands, node.results);
  bool changed = false;
  for (auto [tensor, sharding] : llvm::zip_equal(node.rule.operands, node.operands))
    changed |= sharding && extend(*sharding, tensor, axes);
  for (auto [tensor, sharding] : llvm::zip_equal(node.rule.results, node.results))
    changed |= sharding && extend(*sharding, tensor, axes);
  return changed;
}

bool Propagation::extend(TensorSharding &sharding, const graph::FactorRule::TensorFactors &tensor,
                         const FactorAxes &axes) {
  bool changed = false;
  for (auto [dim, factors, proposed] : llvm::zip_equal(sharding.dims, tensor, axes.project(tensor))) {
    ArrayRef<StringAttr> present = dim.axes, offered = proposed;
    if (!dim.open || offered.size() <= present.size() || offered.take_front(present.size()) != present)
      continue;
    ArrayRef<StringAttr> added = offered.drop_front(present.size());
    if (llvm::any_of(added, [&](StringAttr axis) { return sharding.uses(axis); }))
      continue;
    for (int64_t factor : factors)
      if (llvm::is_contained(axes[factor], added.front()))
        dim.origin = axes.origin(factor);
    dim.axes = std::move(proposed);
    changed = true;
  }
  return changed;
}
