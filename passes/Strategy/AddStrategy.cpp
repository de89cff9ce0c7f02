//===- AddStrategy.cpp - Write a strategy as the flags of bowline-compile do
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "passes/Strategy/Passes.h"
#include "passes/Strategy/StrategyFlags.h"

namespace bowline {
#define GEN_PASS_DEF_ADDSTRATEGY
#include "passes/Strategy/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class AddStrategy : public bowline::impl::AddStrategyBase<AddStrategy> {
public:
  using AddStrategyBase::AddStrategyBase;

  void runOnOperation() override {
    auto said = [](auto &option) {
      return option.hasValue() ? std::optional<int64_t>(option.getValue()) : std::nullopt;
    };
    StrategyFlags flags;
    flags.mesh = mesh;
    flags.sequenceParallel = sequenceParallel;
    flags.zero = said(zero);
    flags.zeroAxis = zeroAxis;
    flags.prefetch = said(prefetch);
    flags.zeroOnce = zeroOnce;
    flags.zeroEach = zeroEach;
    flags.schedule = schedule;
    flags.microbatches = said(microbatches);
    flags.stages = stages;
    flags.recompute = recompute;
    flags.bucketBytes = said(bucketBytes);
    flags.overlapChunks = said(overlapChunks);
    if (failed(addStrategyFlags(getOperation(), flags)))
      signalPassFailure();
  }
};

} // namespace
