//===- RankHarness.cpp - Training plans, run by all their ranks
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Execution/RankHarness.h"
#include "compiler/Check/PlanChecker.h"
#include "runtime/comm/loopback/loopback_group.h"
#include "runtime/executor/session.h"
#include "runtime/plan/mesh_view.h"
#include "runtime/plan/plan_writer.h"
#include "runtime/train/agreement.h"
#include "runtime/train/checkpoint.h"
#include "test/Unit/Runtime/arena_probe.h"
#include "gtest/gtest.h"

#include <cstring>
#include <thread>

using namespace bowline;
using namespace bowline::test;

static absl::Status trainAsRank(absl::Span<const uint8_t> bytes, const TokenDataset &dataset, const TrainRun &run,
                                CommunicatorGroup *group, std::vector<StepResult> &results) {
  BOWLINE_ASSIGN_OR_RETURN(LoadedPlan plan, LoadedPlan::FromBytes(bytes));
  SessionOptions options;
  options.group = group;
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(std::move(plan), options));
  EXPECT_EQ(session->arena().bytes(), ArenaBytes(session->plan(), session->role())) << "rank " << session->rank();
  bowline::testing::ArenaProbe probe(*session, 0xff);
  BOWLINE_ASSIGN_OR_RETURN(Trainer trainer, Trainer::Create(session.get(), &dataset, DataOrder::kShuffle));
  BOWLINE_ASSIGN_OR_RETURN(Agreement agreement, Agreement::Create(group, session->device()));
  if (run.resume.empty()) {
    BOWLINE_RETURN_IF_ERROR(trainer.Initialize());
  } else {
    BOWLINE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(run.resume));
    BOWLINE_RETURN_IF_ERROR(trainer.Resume(checkpoint));
  }
  for (int step = 0; step < run.steps; ++step) {
    BOWLINE_ASSIGN_OR_RETURN(StepResult result, trainer.Step());
    results.push_back(result);
  }
  std::optional<uint64_t> outside = probe.FirstOutsideOfBuffers(probe.Written());
  EXPECT_FALSE(outside) << "rank " << session->rank() << " wrote byte " << *outside
                        << " of the arena, where no buffer is";
  return run.save.empty() ? absl::OkStatus() : trainer.Save(run.save, &agreement).status();
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

  int ranks = static_cast<int>(RankCount(loaded->plan()));
  auto group = LoopbackGroup::Create(ranks, {std::chrono::seconds(60)});
  EXPECT_TRUE(group.ok()) << group.status();
  std::vector<std::vector<StepResult>> results(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      std::unique_ptr<CommunicatorGroup> view = (*group)->AsRank(rank);
      absl::Status status =
          trainAsRank({bytes->data(), bytes->size()}, dataset, run, ranks == 1 ? nullptr : view.get(), results[rank]);
      EXPECT_TRUE(status.ok()) << "rank " << rank << ": " << status;
      view->Abort(status);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (int rank = 1; rank < ranks; ++rank) {
    bool equal = results[rank].size() == results[0].size() &&
                 (results[0].empty() || // then there may be no memory to compare
                  std::memcmp(results[rank].data(), results[0].data(), results[0].size() * sizeof(StepResult)) == 0);
    EXPECT_TRUE(equal) << "ranks 0 and " << rank << " report different results";
  }
  return results[0];
}
