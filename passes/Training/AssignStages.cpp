//===- AssignStages.cpp - Divide the layers of a model into pipeline stages
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Stage/StageOps.h"
#include "passes/Training/Passes.h"
#include "passes/Training/Stages/StageAssignment.h"

namespace bowline {
#define GEN_PASS_DEF_ASSIGNSTAGES
#include "passes/Training/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class AssignStages : public bowline::impl::AssignStagesBase<AssignStages> {
public:
  using AssignStagesBase::AssignStagesBase;

  void runOnProgram() override {
    dist::StrategyOp op = dist::StrategyOp::of(getOperation());
    if (!op)
      return markAllAnalysesPreserved();
    FailureOr<Strategy> strategy = Strategy::fromOp(op);
    if (failed(strategy))
      return signalPassFailure();
    if (strategy->getSize(strategy->stageAxis) == 1)
      return markAllAnalysesPreserved();
    if (failed(StageAssignment(getOperation(), *strategy, locationOf(op)).run()))
      signalPassFailure();
  }

private:
  /// The location of the line of the strategy that says most about stages.
  static Location locationOf(dist::StrategyOp op) {
    if (auto stages = op.getOnly<dist::StagesOp>())
      return stages.getLoc();
    auto schedule = op.getOnly<dist::ScheduleOp>();
    return schedule ? schedule.getLoc() : op.getMesh().getLoc();
  }
};

} // namespace
