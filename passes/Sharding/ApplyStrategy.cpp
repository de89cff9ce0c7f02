//===- ApplyStrategy.cpp - From a strategy to the shardings of parameters and inputs
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/Passes.h"
#include "passes/Sharding/StrategyApplication.h"

namespace bowline {
#define GEN_PASS_DEF_APPLYSTRATEGY
#include "passes/Sharding/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class ApplyStrategy : public bowline::impl::ApplyStrategyBase<ApplyStrategy> {
public:
  using ApplyStrategyBase::ApplyStrategyBase;

  void runOnOperation() override {
    dist::StrategyOp op = Strategy::find(getOperation());
    if (!op && mesh.empty())
      return markAllAnalysesPreserved();
    FailureOr<Strategy> strategy = op ? fromOp(op) : fromFlags();
    if (failed(strategy) || failed(StrategyApplication(getOperation(), *strategy).run()))
      return signalPassFailure();
    if (op)
      return;
    auto builder = OpBuilder::atBlockBegin(getOperation().getBody());
    strategy->write(builder, getOperation().getLoc(), "strategy");
  }

private:
  FailureOr<Strategy> fromOp(dist::StrategyOp op) {
    if (mesh.empty())
      return Strategy::fromOp(op);
    return op.emitOpError("and the option mesh=") << mesh << " both say how to divide the program; remove one";
  }

  FailureOr<Strategy> fromFlags() {
    StrategyFlags flags;
    flags.mesh = mesh;
    flags.sequenceParallel = sequenceParallel;
    flags.zero = zero;
    flags.zeroAxis = zeroAxis;
    flags.schedule = schedule;
    if (microbatches != 0)
      flags.microbatches = microbatches;
    flags.stages = stages;
    return Strategy::fromFlags(flags, [&] { return getOperation().emitError(); });
  }
};

} // namespace
