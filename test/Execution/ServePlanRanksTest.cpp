//===- ServePlanRanksTest.cpp - Steps on several ranks compute what one rank gives
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Execution/ServePlanFixture.h"

using namespace bowline;
using namespace bowline::serve_plan;
using ::bowline::testing::ReadTensor;
using ::bowline::testing::WriteTensor;
using ::testing::HasSubstr;

namespace {

/// The values that a rank computes in one step.
struct OfRank {
  std::vector<float> logits, logprobs;
  std::vector<int32_t> sampled, likely;
};

class ServePlanOnRanks : public ServePlan {
protected:
  /// Computes all steps again as one rank of a plan.
  absl::Status run(absl::Span<const uint8_t> plan, RankGroup *group, std::vector<OfRank> &results) const {
    BOWLINE_ASSIGN_OR_RETURN(LoadedPlan loaded, LoadedPlan::FromBytes(plan));
    SessionOptions options;
    options.driver = TestDriver(GetParam().driver);
    options.group = group;
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(std::move(loaded), options));
    BOWLINE_RETURN_IF_ERROR(LoadWeights(*session, optionsOf(GetParam(), CompileMode::Serve).model).status());
    spoilCaches(*session);
    for (const Step &step : steps) {
      writeTo(*session, step.bucket, step.inputs);
      std::string entry = entryOf(step.bucket);
      BOWLINE_RETURN_IF_ERROR(session->Run(entry));
      results.push_back({ReadTensor<float>(*session, session->Output(entry, "logits")),
                         ReadTensor<float>(*session, session->Output(entry, "logprobs")),
                         ReadTensor<int32_t>(*session, session->Output(entry, "sampled")),
                         ReadTensor<int32_t>(*session, session->Output(entry, "likely"))});
    }
    return absl::OkStatus();
  }

  /// The results of each rank, each on a thread of its own.
  std::vector<std::vector<OfRank>> runOnRanks(absl::Span<const uint8_t> plan, int ranks) const {
    auto group = LoopbackGroup::Create(ranks, {std::chrono::seconds(60)});
    EXPECT_TRUE(group.ok()) << group.status();
    std::vector<std::vector<OfRank>> results(ranks);
    std::vector<absl::Status> statuses(ranks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        std::unique_ptr<RankGroup> view = (*group)->AsRank(rank);
        statuses[rank] = run(plan, view.get(), results[rank]);
        view->Abort(statuses[rank]);
      });
    for (std::thread &thread : threads)
      thread.join();
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_TRUE(statuses[rank].ok()) << "rank " << rank << ": " << statuses[rank];
    return results;
  }
};

} // namespace

// Ranks divide the key heads of llama-tiny, and each has one of gpt2-tiny's.
INSTANTIATE_TEST_SUITE_P(All, ServePlanOnRanks,
                         ::testing::Values(Way{.model = "llama-tiny", .mesh = "tp=2"},
                                           Way{.model = "gpt2-tiny", .mesh = "tp=3"}),
                         nameOfWay);

TEST_P(ServePlanOnRanks, StepsGiveTheLogitsOfOneRankAndTheSameTokensOnAll) {
  Sequence first = make(kContext), second = make(9), third = make(14);
  step(16, {&first, &second}, {11, 5});
  step(5, {&first, &second, &third}, {1, 1, 3});
  step(1, {&second}, {1});
  step(16, {&third, &first}, {6, 10});
  for (int i = 0; i < 2; ++i) {
    step(5, {&second, &third}, {1, 2});
    step(1, {&third}, {0});
  }
  step(1, {&first}, {1});
  ASSERT_FALSE(HasFailure());
  std::unique_ptr<fbs::PlanT> plan = compile(optionsOf(GetParam(), CompileMode::Serve));
  ASSERT_TRUE(plan);
  std::vector<uint8_t> bytes = bytesOf(*plan);
  auto loaded = LoadedPlan::FromBytes(bytes);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  absl::Status sound = PlanChecker(loaded->plan()).check();
  ASSERT_TRUE(sound.ok()) << sound;
  auto ranks = static_cast<int>(RankCount(loaded->plan()));
  ASSERT_GT(ranks, 1);
  std::vector<std::vector<OfRank>> results = runOnRanks(bytes, ranks);
  ASSERT_FALSE(HasFailure());
  int64_t drawn = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    ASSERT_EQ(results[rank].size(), steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      const OfRank &got = results[rank][i], &other = results[0][i];
      expectNear(got.logits, steps[i].logits, &boundOfSums,
                 "in step " + std::to_string(i) + " on rank " + std::to_string(rank));
      EXPECT_EQ(got.sampled, other.sampled);
      EXPECT_EQ(got.likely, other.likely);
      EXPECT_EQ(got.logprobs, other.logprobs);
      drawn += std::count_if(got.sampled.begin(), got.sampled.end(), [](int32_t token) { return token >= 0; });
    }
  }
  EXPECT_GT(drawn, 10 * ranks);
}
