//===- SplitStages.cpp - One program per rank of a pipeline
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Local/Passes.h"
#include "passes/Local/Stages/StageSplitting.h"
#include "passes/Stages/StageLabels.h"

namespace bowline {
#define GEN_PASS_DEF_SPLITSTAGES
#include "passes/Local/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class SplitStages : public bowline::impl::SplitStagesBase<SplitStages> {
public:
  using SplitStagesBase::SplitStagesBase;

  void runOnProgram() override {
    ModuleOp module = getOperation();
    std::optional<int64_t> count = stage::countOf(module);
    dist::StrategyOp op = dist::StrategyOp::of(module);
    if (!count || !op || module.getOps<graph::FuncOp>().empty())
      return markAllAnalysesPreserved();
    FailureOr<Strategy> strategy = Strategy::fromOp(op);
    if (failed(strategy))
      return signalPassFailure();
    if (strategy->getSize(strategy->stageAxis) == 1)
      return markAllAnalysesPreserved();
    if (failed(labelStages(module, *count)))
      return signalPassFailure();
    if (failed(StageSplitting(module, *strategy, op).run()))
      signalPassFailure();
  }
};

} // namespace
