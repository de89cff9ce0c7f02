//===- RankHarness.h - Training plans, run by all their ranks
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_EXECUTION_RANKHARNESS_H
#define BOWLINE_TEST_EXECUTION_RANKHARNESS_H

#include "runtime/plan/plan_generated.h"
#include "runtime/train/dataset.h"
#include "runtime/train/trainer.h"

#include <string>
#include <vector>

namespace bowline::test {

/// What ranks do. Empty names: begin anew; save nothing.
struct TrainRun {
  int steps = 0;
  std::string resume = {}; // a checkpoint, or a directory of them
  std::string save = {};   // directory for a checkpoint after the last step
};

/// Checks the plan, then trains as `run` says with every rank of it on a thread of its own. Adds a test failure, and
/// returns what was done so far, where something fails, where ranks report different results, or where one uses another
/// amount of memory than the plan says.
std::vector<StepResult> trainOnRanks(fbs::PlanT &plan, const TokenDataset &dataset, const TrainRun &run);

inline std::vector<StepResult> trainOnRanks(fbs::PlanT &plan, const TokenDataset &dataset, int steps) {
  return trainOnRanks(plan, dataset, TrainRun{steps});
}

} // namespace bowline::test

#endif // BOWLINE_TEST_EXECUTION_RANKHARNESS_H
