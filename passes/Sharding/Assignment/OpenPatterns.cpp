//===- OpenPatterns.cpp - Lines of the strategy that leave dimensions of parameters open
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/Assignment/OpenPatterns.h"
#include "passes/Sharding/Assignment/StrategyApplication.h"

using namespace mlir;
using namespace bowline;

static dist::ShardingAttr shardingOf(graph::ParamOp param) {
  return param->getAttrOfType<dist::ShardingAttr>(dist::DistDialect::kShardingAttr);
}

OpenPatterns::OpenPatterns(ModuleOp module) {
  dist::StrategyOp strategy = dist::StrategyOp::of(module);
  if (!strategy)
    return;
  for (auto line : strategy.getBody().front().getOps<dist::ShardOp>()) {
    if (llvm::none_of(line.getSharding().getDims(), [](dist::DimAttr dim) { return dim.getOpen(); }))
      continue;
    auto glob = llvm::GlobPattern::create(line.getPattern(), dist::kMaxPatternWords);
    Line &own = lines.emplace_back(Line{line, {}});
    for (auto param : module.getOps<graph::ParamOp>())
      // Where several lines match, a later one with another sharding decided.
      if (!param.isMirror() && shardingOf(param) == line.getSharding() && StrategyApplication::matches(*glob, param))
        own.params.push_back(param);
  }
}

static bool hasFurtherAxes(graph::ParamOp param, dist::ShardingAttr given) {
  for (auto [now, before] : llvm::zip_equal(shardingOf(param).getDims(), given.getDims()))
    if (now.getAxes().size() > before.getAxes().size())
      return true;
  return false;
}

void OpenPatterns::remarkUnused() const {
  for (auto [op, params] : lines) {
    dist::ShardingAttr given = dist::ShardOp(op).getSharding();
    if (params.empty() || llvm::any_of(params, [&](graph::ParamOp param) { return hasFurtherAxes(param, given); }))
      continue;
    InFlightDiagnostic remark = emitRemark(dist::ShardOp(op).getLoc());
    remark << "'?' adds no axis to '" << graph::ParamOp(params.front()).getName() << "'";
    if (size_t more = params.size() - 1)
      remark << " and " << more << " more " << (more == 1 ? "parameter" : "parameters");
    remark << ": values computed with " << (params.size() == 1 ? "it" : "them")
           << " are sharded along no further axis in these dimensions";
  }
}
