//===- RankHarness.cpp - Training plans, run by all their ranks
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Execution/RankHarness.h"
#include "checker/PlanChecker.h"
#include "runtime/comm/agreement.h"
#include "runtime/comm/loopback/loopback_group.h"
#include "runtime/executor/session.h"
#include "runtime/plan/plan_writer.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/evaluator.h"
#include "test/Support/test_driver.h"
#include "test/Unit/Runtime/arena_probe.h"
#include "gtest/gtest.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <bit>
#include <thread>

using namespace bowline;
using namespace bowline::test;

static absl::Status readStates(const Session &session, std::vector<uint8_t> &bytes) {
  for (uint32_t state : session.states()) {
    TensorRef tensor = session.StateAt(state);
    bytes.resize(bytes.size() + tensor.bytes);
    BOWLINE_RETURN_IF_ERROR(session.Read(tensor, {bytes.data() + bytes.size() - tensor.bytes, tensor.bytes}));
  }
  return absl::OkStatus();
}

namespace {

struct OfRank {
  std::vector<StepResult> steps;
  std::vector<double> evaluations;
  std::vector<uint8_t> states;
};

} // namespace

static absl::Status trainAsRank(absl::Span<const uint8_t> bytes, const TokenDataset &dataset, const TrainRun &run,
                                RankGroup *group, OfRank &results) {
  BOWLINE_ASSIGN_OR_RETURN(LoadedPlan plan, LoadedPlan::FromBytes(bytes));
  SessionOptions options;
  options.group = group;
  options.driver = TestDriver(run.driver);
  options.prove = false;
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(std::move(plan), options));
  bowline::testing::ArenaProbe probe(*session, 0xff);
  BOWLINE_ASSIGN_OR_RETURN(Trainer trainer, Trainer::Create(session.get(), &dataset, DataOrder::kShuffle));
  std::optional<Evaluator> evaluator;
  if (run.evaluate) {
    BOWLINE_ASSIGN_OR_RETURN(evaluator, Evaluator::Create(session.get(), &dataset, /*batches=*/1));
  }
  BOWLINE_ASSIGN_OR_RETURN(Agreement agreement, Agreement::Create(group));
  if (run.resume.empty()) {
    BOWLINE_RETURN_IF_ERROR(trainer.Initialize());
  } else {
    BOWLINE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(run.resume));
    BOWLINE_RETURN_IF_ERROR(trainer.Resume(checkpoint));
  }
  for (int step = 0; step < run.steps; ++step) {
    BOWLINE_ASSIGN_OR_RETURN(StepResult result, trainer.Step());
    results.steps.push_back(result);
    if (!evaluator)
      continue;
    BOWLINE_ASSIGN_OR_RETURN(double loss, evaluator->Evaluate());
    results.evaluations.push_back(loss);
  }
  const std::vector<bool> written = probe.Written();
  if (std::optional<uint64_t> outside = probe.FirstOutsideOfBuffers(written))
    return absl::InternalError(absl::StrCat("byte ", *outside, " of the arena was written, where no buffer is"));
  // After all entries ran, all buffers are written, except for the scratch that kernels did not need. The driver
  // `discrete` fills scratch, and all else at its place, with the probe's pattern.
  const uint64_t planned = bowline::testing::EndOfBuffers(*session), end = bowline::testing::EndOf(written);
  if (options.driver.empty() && run.evaluate && run.resume.empty() && run.steps > 0 && end < planned)
    return absl::InternalError(absl::StrCat("the plan states buffers up to byte ", planned, " of the arena, and only ",
                                            end, " bytes of it were used"));
  BOWLINE_RETURN_IF_ERROR(readStates(*session, results.states));
  return run.save.empty() ? absl::OkStatus() : trainer.Save(run.save, &agreement).status();
}

static bool sameBits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

/// Compares the values that two steps computed; the times that they took may differ.
static bool sameBits(const StepResult &a, const StepResult &b) {
  return sameBits(a.loss, b.loss) && sameBits(a.grad_norm, b.grad_norm) && sameBits(a.lr, b.lr);
}

template <typename T> static bool sameBits(const std::vector<T> &a, const std::vector<T> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T &one, const T &other) { return sameBits(one, other); });
}

bool TrainOutcome::equals(const TrainOutcome &other) const {
  return status == other.status && sameBits(steps, other.steps) && sameBits(evaluations, other.evaluations) &&
         states == other.states;
}

TrainOutcome bowline::test::tryOnRanks(absl::Span<const uint8_t> plan, const TokenDataset &dataset,
                                       const TrainRun &run) {
  TrainOutcome outcome;
  auto loaded = LoadedPlan::FromBytes(plan);
  if (!loaded.ok()) {
    outcome.status = loaded.status();
    return outcome;
  }
  fbs::PlanT guarded;
  loaded->plan().UnPackTo(&guarded);
  bowline::testing::AddGuards(guarded);
  auto bytes = WritePlan(guarded);
  if (!bytes.ok()) {
    outcome.status = bytes.status();
    return outcome;
  }
  int ranks = static_cast<int>(RankCount(loaded->plan()));
  auto group = LoopbackGroup::Create(ranks, {std::chrono::seconds(60)});
  EXPECT_TRUE(group.ok()) << group.status();
  std::vector<OfRank> results(ranks);
  std::vector<absl::Status> statuses(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      std::unique_ptr<RankGroup> view = (*group)->AsRank(rank);
      statuses[rank] =
          trainAsRank({bytes->data(), bytes->size()}, dataset, run, ranks == 1 ? nullptr : view.get(), results[rank]);
      view->Abort(statuses[rank]);
    });
  for (std::thread &thread : threads)
    thread.join();
  outcome.steps = results[0].steps;
  outcome.evaluations = results[0].evaluations;
  for (OfRank &result : results)
    outcome.states.push_back(std::move(result.states));
  for (int rank = 0; rank < ranks && outcome.status.ok(); ++rank)
    outcome.status = Annotate(statuses[rank], "rank " + std::to_string(rank));
  for (int rank = 1; rank < ranks && outcome.status.ok(); ++rank)
    if (!sameBits(results[rank].steps, results[0].steps) ||
        !sameBits(results[rank].evaluations, results[0].evaluations))
      outcome.status = absl::InternalError("ranks 0 and " + std::to_string(rank) + " report different results");
  return outcome;
}

std::vector<StepResult> bowline::test::trainOnRanks(fbs::PlanT &plan, const TokenDataset &dataset,
                                                    const TrainRun &run) {
  auto bytes = WritePlan(plan);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  if (!bytes.ok())
    return {};
  auto loaded = LoadedPlan::FromBytes({bytes->data(), bytes->size()});
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  if (!loaded.ok())
    return {};
  PlanChecker checker(loaded->plan());
  absl::Status proven = checker.check();
  EXPECT_TRUE(proven.ok()) << proven;
  absl::Status certified = RequireCertificates(loaded->plan());
  EXPECT_TRUE(certified.ok()) << certified;
  TrainOutcome outcome = tryOnRanks({bytes->data(), bytes->size()}, dataset, run);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  return outcome.steps;
}
