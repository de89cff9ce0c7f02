#include "runtime/serve/scheduler.h"

#include <gmock/gmock.h>

#include <limits>
#include <numeric>

#include "test/Unit/Serve/fake_paged_model.h"

namespace bowline::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SchedulerTest : public ::testing::Test {
 protected:
  void Make(CacheShape shape, SchedulerOptions options = {}) {
    auto made = Scheduler::Create(std::move(shape), options);
    ASSERT_TRUE(made.ok()) << made.status();
    scheduler_ = *std::move(made);
    model_.emplace(scheduler_->shape());
  }
  // A prompt of the tokens first, first + 1, ...
  uint64_t Submit(int64_t prompt, int64_t more, int32_t first = 1) {
    SequenceRequest request;
    request.prompt.resize(static_cast<size_t>(prompt));
    std::iota(request.prompt.begin(), request.prompt.end(), first);
    request.max_new_tokens = more;
    auto id = scheduler_->Submit(std::move(request));
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(0);
  }
  // Runs a step; gives the rows of its sequences.
  std::vector<int32_t> Step() {
    std::vector<int32_t> rows;
    const auto batch = scheduler_->Next();
    if (!batch.has_value()) return rows;
    bucket_ = batch->bucket;
    for (size_t r = 0; r + 1 < batch->rows.size(); ++r) {
      if (batch->lengths[r] > 0) rows.push_back(batch->rows[r + 1] - batch->rows[r]);
    }
    std::vector<SampledToken> sampled;
    const absl::Status status = model_->Step(*batch, sampled);
    EXPECT_TRUE(status.ok()) << status;
    progress_ = scheduler_->Finish(sampled);
    return rows;
  }

  std::unique_ptr<Scheduler> scheduler_;
  std::optional<FakePagedModel> model_;
  std::vector<Progress> progress_;  // of the last step
  int64_t bucket_ = 0;              // of the last step
};

TEST_F(SchedulerTest, RefusesShapesThatMakeNoStep) {
  const CacheShape good = {9, 4, 32, 2, {1, 8}};
  const auto says = [](const CacheShape& shape, const SchedulerOptions& options = {}) {
    return std::string(Scheduler::Create(shape, options).status().message());
  };
  EXPECT_EQ(says(good), "");
  CacheShape shape = good;
  shape.blocks = 1;
  EXPECT_THAT(says(shape), HasSubstr("with the null block, is 1; it has to be from 2 to 2147483647"));
  shape = good;
  shape.blocks = int64_t{1} << 31;
  EXPECT_THAT(says(shape), HasSubstr("blocks"));
  shape = good;
  shape.block_tokens = 0;
  EXPECT_THAT(says(shape), HasSubstr("tokens of a block is 0"));
  shape = good;
  shape.max_context = 0;
  EXPECT_THAT(says(shape), HasSubstr("the context is 0"));
  shape = good;
  shape.max_sequences = 0;
  EXPECT_THAT(says(shape), HasSubstr("the number of sequences is 0"));
  shape = good;
  shape.buckets = {};
  EXPECT_THAT(says(shape), HasSubstr("there is no bucket"));
  shape.buckets = {0, 8};
  EXPECT_THAT(says(shape), HasSubstr("a bucket is 0"));
  shape.buckets = {8, 8};
  EXPECT_THAT(says(shape), HasSubstr("ascending"));
  SchedulerOptions options;
  options.max_prefill_rows = 0;
  EXPECT_THAT(says(good, options), HasSubstr("rows of prompts is 0"));
}

TEST_F(SchedulerTest, RefusesRequestsThatNeverFit) {
  Make({4, 4, 32, 2, {8}});
  const auto submit = [&](size_t prompt, int64_t more) {
    SequenceRequest request;
    request.prompt.resize(prompt);
    request.max_new_tokens = more;
    return scheduler_->Submit(std::move(request)).status();
  };
  EXPECT_THAT(submit(0, 1).message(), HasSubstr("the prompt is empty"));
  EXPECT_THAT(submit(1, 0).message(), HasSubstr("asks for 0 new tokens"));
  EXPECT_THAT(submit(30, 3).message(), HasSubstr("the context has 32 tokens"));
  EXPECT_THAT(submit(1, std::numeric_limits<int64_t>::max()).message(), HasSubstr("the context has 32 tokens"));
  // The cache has 3 blocks of 4 tokens, and the last token needs none.
  EXPECT_THAT(submit(12, 2).message(), HasSubstr("need 4 blocks of 4 tokens, but the cache has 3"));
  EXPECT_TRUE(submit(12, 1).ok());
  EXPECT_TRUE(scheduler_->Cancel(1));
  EXPECT_TRUE(scheduler_->idle());
}

TEST_F(SchedulerTest, TheQueueIsBounded) {
  SchedulerOptions options;
  options.max_waiting = 1;
  Make({9, 4, 8, 2, {8}}, options);
  for (int i = 0; i < 3; ++i) Submit(2, 2);
  EXPECT_EQ(scheduler_->Submit({{1}, 1, {}, {}}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Step(), ElementsAre(2, 2));
  EXPECT_EQ(scheduler_->waiting().size(), 1u);
  EXPECT_EQ(scheduler_->Submit({{1}, 1, {}, {}}).status().code(), absl::StatusCode::kResourceExhausted);
  Step();
  Submit(2, 2);
}

TEST_F(SchedulerTest, ALongPromptDelaysOthersByABoundedStep) {
  SchedulerOptions options;
  options.max_prefill_rows = 100;
  Make({200, 16, 2048, 4, {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}}, options);
  // Alone it may fill the step.
  Submit(1024, 5);
  EXPECT_THAT(Step(), ElementsAre(512));
  EXPECT_THAT(progress_, IsEmpty());
  EXPECT_THAT(Step(), ElementsAre(512));
  EXPECT_EQ(progress_.size(), 1u);
  Submit(2000, 1);
  // Of 101 rows 64 are computed without padding.
  EXPECT_THAT(Step(), ElementsAre(1, 63));
  EXPECT_EQ(bucket_, 64);
  EXPECT_EQ(progress_.size(), 1u);
}

TEST_F(SchedulerTest, ChoosesTheBucketWithMostRowsForItsTime) {
  SchedulerOptions options;
  Make({100, 16, 512, 4, {1, 8, 64}}, options);
  Submit(20, 1);
  EXPECT_THAT(Step(), ElementsAre(8));
  EXPECT_THAT(Step(), ElementsAre(8));
  EXPECT_THAT(Step(), ElementsAre(4));
  EXPECT_EQ(bucket_, 8);
  Submit(50, 1, 100);
  EXPECT_THAT(Step(), ElementsAre(50));
  EXPECT_EQ(bucket_, 64);
}

TEST_F(SchedulerTest, SequencesTakeTurnsWhereAStepHasFewerRows) {
  Make({40, 4, 16, 4, {2}});
  for (int i = 0; i < 4; ++i) Submit(1, 8, 10 * i);
  std::vector<int> tokens(5);
  for (int step = 0; step < 8; ++step) {
    EXPECT_THAT(Step(), ElementsAre(1, 1));
    for (const Progress& progress : progress_) ++tokens[progress.id];
  }
  EXPECT_THAT(tokens, ElementsAre(0, 4, 4, 4, 4));
}

TEST_F(SchedulerTest, ThoseWhoComeTakeNobodysTurn) {
  Make({40, 4, 16, 2, {1}});
  const uint64_t old = Submit(1, 8);
  std::vector<uint64_t> served;
  for (int step = 0; step < 8; ++step) {
    // Each needs one step, and another one is always there.
    Submit(1, 1, 10 + step);
    Step();
    served.push_back(progress_.at(0).id == old);
  }
  EXPECT_THAT(served, ElementsAre(1, 0, 1, 0, 1, 0, 1, 0));
}

TEST_F(SchedulerTest, PromptsThatBeginAlikeShareBlocks) {
  Make({20, 4, 32, 4, {32}});
  Submit(9, 4);
  EXPECT_THAT(Step(), ElementsAre(9));
  // The hit ends before the prompt's last token.
  Submit(9, 4);
  Submit(8, 4);
  EXPECT_THAT(Step(), ElementsAre(1, 1, 4));
  EXPECT_EQ(scheduler_->prefix_queries(), 26u);
  EXPECT_EQ(scheduler_->prefix_hits(), 12u);
  // The third one computed a block that was there, and gave it back.
  const std::vector<int32_t> blocks = scheduler_->running()[0]->blocks;
  EXPECT_THAT(scheduler_->running()[2]->blocks, ElementsAre(blocks[0], blocks[1]));
  EXPECT_EQ(scheduler_->pool().references(blocks[1]), 3);
}

TEST_F(SchedulerTest, PromptsThatComeTogetherAreComputedOnce) {
  Make({33, 4, 32, 4, {1, 2, 4, 8, 16}});
  // Three alike, as answers of one request are, and one that differs in its third block.
  Submit(14, 2);
  Submit(14, 2);
  Submit(14, 2);
  SequenceRequest other;
  other.prompt.resize(14);
  std::iota(other.prompt.begin(), other.prompt.end(), 1);
  other.prompt[9] = 77;
  other.max_new_tokens = 2;
  ASSERT_TRUE(scheduler_->Submit(std::move(other)).ok());
  // The first computes its whole prompt; the others wait.
  EXPECT_THAT(Step(), ElementsAre(14));
  // They have three blocks of it, and two.
  EXPECT_EQ(scheduler_->running()[1]->id, 2U);
  EXPECT_THAT(Step(), ElementsAre(1, 2, 2, 6));
  EXPECT_EQ(scheduler_->prefix_hits(), 12U + 12 + 8);
  EXPECT_EQ(progress_.size(), 4U);
}

TEST_F(SchedulerTest, WhoWaitsForAPromptGoesOnWithoutIt) {
  Make({33, 4, 32, 2, {4}});
  const uint64_t first = Submit(14, 2);
  Submit(14, 2);
  EXPECT_THAT(Step(), ElementsAre(4));
  EXPECT_TRUE(scheduler_->Cancel(first));
  EXPECT_THAT(Step(), ElementsAre(4));
  EXPECT_EQ(scheduler_->running()[0]->cached, 8);
}

TEST_F(SchedulerTest, BlocksOfAPromptThatIsComputedInPartsArePromised) {
  Make({9, 2, 16, 2, {2}});
  Submit(12, 1);
  Submit(8, 1, 50);
  for (int step = 0; step < 6; ++step) {
    EXPECT_EQ(scheduler_->pool().owned(), step);
    EXPECT_THAT(Step(), ElementsAre(2));
    EXPECT_EQ(scheduler_->waiting().size(), 1u);
  }
  EXPECT_THAT(Step(), ElementsAre(2));
  EXPECT_TRUE(scheduler_->waiting().empty());
  EXPECT_EQ(scheduler_->preemptions(), 0u);
}

TEST_F(SchedulerTest, ABlockOfAHitIsNotTakenForItsOwnRequest) {
  Make({6, 2, 16, 2, {1, 16}});
  Submit(8, 1);
  EXPECT_THAT(Step(), ElementsAre(8));
  // Of the 4 blocks that are kept 3 are left, and the same prompt needs one more.
  Submit(3, 2, 50);
  Submit(8, 1);
  EXPECT_THAT(Step(), ElementsAre(3));
  EXPECT_THAT(Step(), ElementsAre(1));
  EXPECT_EQ(scheduler_->waiting().size(), 1u);
  EXPECT_THAT(Step(), ElementsAre(2));
  EXPECT_EQ(scheduler_->preemptions(), 0u);
}

TEST_F(SchedulerTest, TheYoungestGivesItsBlocksUpAndGoesOnLater) {
  SchedulerOptions options;
  options.prefix_cache = false;
  // 4 blocks of 2 tokens: both begin, and not both can end.
  Make({5, 2, 8, 2, {8}}, options);
  const SequenceRequest first = {{1, 2, 3}, 5, {}, {}}, second = {{4, 5}, 5, {}, {}};
  ASSERT_TRUE(scheduler_->Submit(first).ok());
  ASSERT_TRUE(scheduler_->Submit(second).ok());
  std::vector<std::vector<int32_t>> tokens(3);
  std::vector<uint64_t> ended;
  while (!Step().empty()) {
    for (const Progress& progress : progress_) {
      tokens[progress.id].push_back(progress.sampled.token);
      if (progress.ended.has_value()) ended.push_back(progress.id);
    }
  }
  EXPECT_THAT(ended, ElementsAre(1, 2));
  EXPECT_EQ(scheduler_->preemptions(), 1u);
  EXPECT_EQ(tokens[1], FakePagedModel::GenerateAlone(first));
  EXPECT_EQ(tokens[2], FakePagedModel::GenerateAlone(second));
}

TEST_F(SchedulerTest, AStepThatFailsEndsItsSequencesAlone) {
  Make({20, 4, 32, 2, {1}});
  const uint64_t first = Submit(1, 4), second = Submit(1, 4);
  ASSERT_TRUE(scheduler_->Next().has_value());
  EXPECT_THAT(scheduler_->Fail(), ElementsAre(first));
  EXPECT_THAT(Step(), ElementsAre(1));
  EXPECT_EQ(progress_.at(0).id, second);
}

}  // namespace
}  // namespace bowline::serve
