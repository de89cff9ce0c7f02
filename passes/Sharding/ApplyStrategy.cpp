//===- ApplyStrategy.cpp - From a strategy to the shardings of parameters and inputs
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/Assignment/StrategyApplication.h"
#include "passes/Sharding/Passes.h"

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

  void runOnProgram() override {
    dist::StrategyOp op = dist::StrategyOp::of(getOperation());
    if (!op || !op.getMesh())
      return markAllAnalysesPreserved();
    FailureOr<Strategy> strategy = Strategy::fromOp(op);
    if (failed(strategy) || failed(StrategyApplication(getOperation(), *strategy).run()))
      signalPassFailure();
  }
};

} // namespace
