#include "runtime/serve/batch_engine.h"

#include <gmock/gmock.h>

#include <future>

#include "test/Unit/Serve/fake_paged_model.h"

namespace bowline::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A request, and the engine's answers to it.
struct Request {
  explicit Request(std::vector<int32_t> prompt, int64_t max_new_tokens) {
    generation.prompt = std::move(prompt);
    generation.max_new_tokens = max_new_tokens;
    generation.take = [this](const SampledToken& sampled) {
      tokens.push_back(sampled.token);
      return tokens.size() < enough;
    };
    generation.finish = [this](FinishReason r, const absl::Status& s) {
      status = s;
      reason.set_value(r);
    };
  }
  std::vector<int32_t> Alone() const {
    return FakePagedModel::GenerateAlone({generation.prompt,
                                          generation.max_new_tokens,
                                          {static_cast<float>(generation.temperature), generation.top_k,
                                           static_cast<float>(generation.top_p), generation.seed, 0},
                                          generation.end_tokens});
  }
  FinishReason Wait() { return reason.get_future().get(); }

  Generation generation;
  std::vector<int32_t> tokens;
  size_t enough = SIZE_MAX;  // tokens
  std::promise<FinishReason> reason;
  absl::Status status;
};

class BatchEngineTest : public ::testing::Test {
 protected:
  void Start(int64_t blocks = 40, SchedulerOptions options = {}) {
    const CacheShape shape = {blocks, 4, 64, 4, {1, 4, 16}};
    model_.emplace(shape);
    auto engine =
        BatchEngine::Create(shape, options, [this](const StepBatch& batch, std::vector<SampledToken>& sampled) {
          if (before_step_) BOWLINE_RETURN_IF_ERROR(before_step_());
          BOWLINE_RETURN_IF_ERROR(model_->Step(batch, sampled));
          for (size_t r = 0; r < sampled.size(); ++r) {
            if (batch.wants_token[r] && batch.sampling[r].seed == no_token_for_) sampled[r].token = -1;
          }
          return absl::OkStatus();
        });
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }
  std::shared_ptr<Ticket> Submit(Request& request) {
    auto tickets = engine_->Submit({request.generation});
    EXPECT_TRUE(tickets.ok()) << tickets.status();
    return tickets.ok() ? (*tickets)[0] : nullptr;
  }

  std::function<absl::Status()> before_step_;  // on the engine's thread; set before Start
  uint64_t no_token_for_ = ~uint64_t{0};       // sequences of this seed get none; set before Start
  std::optional<FakePagedModel> model_;
  std::unique_ptr<BatchEngine> engine_;  // ends first
};

TEST_F(BatchEngineTest, AnswersThoseWhoComeAtOnceAsIfEachWereAlone) {
  Start(/*blocks=*/18);
  std::vector<std::unique_ptr<Request>> requests;
  for (int32_t i = 0; i < 24; ++i) {
    std::vector<int32_t> prompt(static_cast<size_t>(1 + i % 9), 3);
    prompt.push_back(i % 5);
    auto& request = requests.emplace_back(std::make_unique<Request>(std::move(prompt), 1 + i));
    request->generation.seed = static_cast<uint64_t>(i % 3);
    request->generation.top_k = i % 2;
  }
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < requests.size(); i += 4) Submit(*requests[i]);
    });
  }
  for (auto& thread : threads) thread.join();
  uint64_t prompts = 0, tokens = 0;
  for (auto& request : requests) {
    EXPECT_EQ(request->Wait(), FinishReason::kLength);
    EXPECT_EQ(request->tokens, request->Alone());
    prompts += request->generation.prompt.size();
    tokens += request->tokens.size();
  }
  const EngineCounts counts = engine_->counts();
  EXPECT_EQ(counts.length, 24u);
  EXPECT_EQ(counts.prompt_tokens, prompts);
  EXPECT_EQ(counts.new_tokens, tokens);
  EXPECT_EQ(counts.running + counts.waiting, 0u);
  EXPECT_EQ(counts.blocks_used, 0u);
  EXPECT_EQ(counts.blocks_total, 17u);
  EXPECT_EQ(counts.prefix_queries, prompts);
}

TEST_F(BatchEngineTest, EndsAtEndTokensAndWhenTheClientHasEnough) {
  Start();
  Request plain({1, 2}, 20), ends({1, 2}, 20), enough({1, 2}, 20);
  const std::vector<int32_t> alone = plain.Alone();
  ends.generation.end_tokens = {alone[5]};
  enough.enough = 3;
  for (Request* request : {&plain, &ends, &enough}) Submit(*request);
  EXPECT_EQ(plain.Wait(), FinishReason::kLength);
  EXPECT_EQ(plain.tokens, alone);
  EXPECT_EQ(ends.Wait(), FinishReason::kStop);
  // The end token is not the client's.
  std::vector<int32_t> before = ends.Alone();
  before.pop_back();
  EXPECT_EQ(ends.tokens, before);
  EXPECT_EQ(enough.Wait(), FinishReason::kStop);
  EXPECT_EQ(enough.tokens.size(), 3u);
}

TEST_F(BatchEngineTest, ARequestIsCancelledWhileItsStepRuns) {
  std::promise<void> began, may_end;
  bool first = true;
  before_step_ = [&] {
    if (!std::exchange(first, false)) return absl::OkStatus();
    began.set_value();
    may_end.get_future().wait();
    return absl::OkStatus();
  };
  Start();
  Request cancelled({1, 2, 3}, 20), waits({4}, 20), other({5}, 3);
  const auto ticket = Submit(cancelled);
  began.get_future().wait();
  const auto queued = Submit(waits);
  Submit(other);
  EXPECT_EQ(engine_->counts().running, 1u);
  EXPECT_EQ(engine_->counts().waiting, 2u);
  ticket->Cancel();
  queued->Cancel();
  may_end.set_value();
  EXPECT_EQ(cancelled.Wait(), FinishReason::kCancelled);
  EXPECT_EQ(waits.Wait(), FinishReason::kCancelled);
  EXPECT_TRUE(cancelled.tokens.empty() && waits.tokens.empty());
  EXPECT_EQ(other.Wait(), FinishReason::kLength);
  EXPECT_EQ(other.tokens, other.Alone());
  EXPECT_EQ(engine_->counts().cancelled, 2u);
  EXPECT_EQ(engine_->counts().blocks_used, 0u);
}

TEST_F(BatchEngineTest, AStepThatFailsEndsItsRequestsAndTheEngineGoesOn) {
  int step = 0;
  before_step_ = [&] { return ++step == 3 ? absl::InternalError("the device is on fire") : absl::OkStatus(); };
  Start();
  Request fails({1, 2, 3}, 20);
  Submit(fails);
  EXPECT_EQ(fails.Wait(), FinishReason::kFailed);
  EXPECT_THAT(fails.status.message(), HasSubstr("on fire"));
  EXPECT_EQ(fails.tokens.size(), 2u);
  Request next({1, 2, 3}, 20);
  Submit(next);
  EXPECT_EQ(next.Wait(), FinishReason::kLength);
  EXPECT_EQ(next.tokens, next.Alone());
  EXPECT_EQ(engine_->counts().failed, 1u);
}

TEST_F(BatchEngineTest, ASequenceWithoutATokenEndsAloneAndSharesNothing) {
  no_token_for_ = 66;
  Start();
  Request fails({1, 2, 3, 4, 5, 6, 7, 8, 9}, 20), beside({4, 5}, 20);
  fails.generation.seed = no_token_for_;
  Submit(fails);
  Submit(beside);
  EXPECT_EQ(fails.Wait(), FinishReason::kFailed);
  EXPECT_THAT(fails.status.message(), HasSubstr("the logits of a sequence are not finite"));
  EXPECT_TRUE(fails.tokens.empty());
  EXPECT_EQ(beside.Wait(), FinishReason::kLength);
  EXPECT_EQ(beside.tokens, beside.Alone());
  Request again(fails.generation.prompt, 3);
  Submit(again);
  EXPECT_EQ(again.Wait(), FinishReason::kLength);
  EXPECT_EQ(again.tokens, again.Alone());
  EXPECT_EQ(engine_->counts().failed, 1u);
  EXPECT_EQ(engine_->counts().prefix_hits, 0u);
  EXPECT_EQ(engine_->counts().blocks_used, 0u);
}

TEST_F(BatchEngineTest, RefusesWhatItCannotTake) {
  std::promise<void> began, may_end;
  bool first = true;
  before_step_ = [&] {
    if (!std::exchange(first, false)) return absl::OkStatus();
    began.set_value();
    may_end.get_future().wait();
    return absl::OkStatus();
  };
  SchedulerOptions options;
  options.max_waiting = 0;
  Start(40, options);
  std::vector<std::unique_ptr<Request>> requests;
  for (int32_t i = 0; i < 5; ++i) requests.push_back(std::make_unique<Request>(std::vector<int32_t>{i}, 3));
  Submit(*requests[0]);
  began.get_future().wait();
  // Of several none is taken where not all have a place, so that the places are still there.
  std::vector<Generation> several(4, requests[4]->generation);
  EXPECT_EQ(engine_->Submit(several).status().code(), absl::StatusCode::kResourceExhausted);
  several.push_back(several[0]);
  EXPECT_EQ(engine_->Submit(several).status().code(), absl::StatusCode::kOutOfRange);
  for (size_t i = 1; i < 4; ++i) Submit(*requests[i]);
  EXPECT_EQ(engine_->Submit({requests[4]->generation}).status().code(), absl::StatusCode::kResourceExhausted);
  Request large({1}, 64);
  EXPECT_EQ(engine_->Submit({large.generation}).status().code(), absl::StatusCode::kInvalidArgument);
  may_end.set_value();
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(requests[i]->Wait(), FinishReason::kLength);
}

TEST_F(BatchEngineTest, DrainsAndThenTakesNoMore) {
  Start();
  Request a({1}, 30), b({2, 2}, 30);
  Submit(a);
  Submit(b);
  std::promise<size_t> drained;
  engine_->Drain([&] { drained.set_value(a.tokens.size() + b.tokens.size()); });
  Request late({1}, 1);
  EXPECT_EQ(engine_->Submit({late.generation}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(drained.get_future().get(), 60u);
  EXPECT_EQ(a.Wait(), FinishReason::kLength);
}

TEST_F(BatchEngineTest, CancelAllAndTheEndOfTheEngineEndRequests) {
  std::promise<void> began;
  std::promise<void> may_end;
  std::shared_future<void> may = may_end.get_future().share();
  bool first = true;
  before_step_ = [&] {
    if (std::exchange(first, false)) began.set_value();
    may.wait();
    return absl::OkStatus();
  };
  Start();
  std::vector<std::unique_ptr<Request>> requests;
  for (int32_t i = 0; i < 7; ++i) {
    requests.push_back(std::make_unique<Request>(std::vector<int32_t>{i}, 50));
    Submit(*requests.back());
  }
  began.get_future().wait();
  engine_->CancelAll();
  may_end.set_value();
  for (auto& request : requests) EXPECT_EQ(request->Wait(), FinishReason::kCancelled);
  Request last({1}, 60);
  Submit(last);
  engine_.reset();
  const FinishReason reason = last.Wait();
  EXPECT_TRUE(reason == FinishReason::kCancelled || reason == FinishReason::kLength);
}

}  // namespace
}  // namespace bowline::serve
