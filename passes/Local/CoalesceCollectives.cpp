//===- CoalesceCollectives.cpp - Fewer and larger collectives
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Local/Collectives/CollectiveBuckets.h"
#include "passes/Local/Collectives/GradientOrder.h"
#include "passes/Local/Collectives/ScalarSums.h"
#include "passes/Local/Collectives/UnusedLine.h"
#include "passes/Local/Passes.h"

namespace bowline {
#define GEN_PASS_DEF_COALESCECOLLECTIVES
#include "passes/Local/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

static dist::BucketBytesOp lineOf(ModuleOp program) {
  dist::StrategyOp strategy = dist::StrategyOp::of(program);
  return strategy ? strategy.getOnly<dist::BucketBytesOp>() : dist::BucketBytesOp();
}

namespace {

class CoalesceCollectives : public bowline::impl::CoalesceCollectivesBase<CoalesceCollectives> {
public:
  using CoalesceCollectivesBase::CoalesceCollectivesBase;

  void runOnProgram() override {
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    auto line = lineOf(getOperation());
    if (!mesh || mesh.getRankCount() == 1) {
      remarkUnused(getOperation(), line, "joined", "there is one rank");
      return markAllAnalysesPreserved();
    }
    int64_t bucketBytes = dist::bucketBytesOf(getOperation());
    bool anyMayJoin = false;
    SymbolTable symbols(getOperation());
    for (auto entry : getOperation().getOps<graph::EntryOp>())
      GradientOrder(symbols).run(entry);
    for (auto function : getOperation().getOps<graph::FuncOp>()) {
      Block &body = function.getBody().front();
      ScalarSums(mesh).run(body);
      anyMayJoin |= CollectiveBuckets(bucketBytes).run(body);
    }
    if (!anyMayJoin)
      remarkUnused(getOperation(), line, "joined",
                   "no two sums, gathers or scatters of one kind over the same axes are independent of each other");
  }
};

} // namespace
