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
#include "runtime/train/data/dataset.h"
#include "runtime/train/trainer.h"

#include "absl/types/span.h"

#include <string>
#include <vector>

namespace bowline::test {

/// A training run of ranks. Empty names: begin anew; save nothing; the driver of all tests.
struct TrainRun {
  int steps = 0;
  std::string resume = {}; // a checkpoint, or a directory of them
  std::string save = {};   // directory for a checkpoint after the last step
  std::string driver = {}; // as SessionOptions has it, or that of all tests (test/Support/test_driver.h)
  bool evaluate = false;   // one batch after each step
};

/// The results of a run: steps and losses of evaluations of rank 0, and of each rank the bytes of all its states at the
/// end.
struct TrainOutcome {
  absl::Status status;
  std::vector<StepResult> steps;
  std::vector<double> evaluations;
  std::vector<std::vector<uint8_t>> states;

  /// Whether both did the same, bit for bit.
  bool equals(const TrainOutcome &other) const;
};

/// Trains as `run` says with every rank of the plan on a thread of its own. Adds no test failure, and asks for no
/// certificate. The error is that of the first rank to have one; ranks that report different results, that write where
/// no buffer is, in the arena or behind its planned end, or that use less of it than the plan says, are one too.
TrainOutcome tryOnRanks(absl::Span<const uint8_t> plan, const TokenDataset &dataset, const TrainRun &run);

/// Checks the plan, then trains as `run` says with every rank of it on a thread of its own. Adds a test failure, and
/// returns the finished steps, where something fails, where ranks report different results, or where one uses another
/// amount of memory than the plan says (see tryOnRanks).
std::vector<StepResult> trainOnRanks(fbs::PlanT &plan, const TokenDataset &dataset, const TrainRun &run);

inline std::vector<StepResult> trainOnRanks(fbs::PlanT &plan, const TokenDataset &dataset, int steps) {
  return trainOnRanks(plan, dataset, TrainRun{steps});
}

} // namespace bowline::test

#endif // BOWLINE_TEST_EXECUTION_RANKHARNESS_H
