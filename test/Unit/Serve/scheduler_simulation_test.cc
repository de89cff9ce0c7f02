// Random histories of a scheduler with a virtual clock. After each step its invariants hold, and each request gets the
// tokens that it would get alone.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "runtime/serve/scheduler.h"
#include "test/Unit/Serve/fake_paged_model.h"

namespace bowline::serve {
namespace {

struct Client {
  SequenceRequest request;
  int64_t arrives = 0, cancels = INT64_MAX;  // times
  std::vector<int32_t> tokens;
  std::optional<FinishReason> ended;
  bool submitted = false, refused = false;
  std::optional<int64_t> last_step;  // the step by which it ends, once it was admitted
};

struct Seen {
  uint64_t preemptions = 0, hits = 0, cancelled = 0, failed = 0, refused = 0, chunks = 0, turns = 0;
};

class History {
 public:
  explicit History(uint64_t seed) : random_(seed) {
    shape_.block_tokens = Pick({1, 2, 4, 16});
    shape_.max_context = Draw(2, 72);
    shape_.max_sequences = Draw(1, 6);
    shape_.buckets = std::vector<std::vector<int64_t>>{
        {1}, {2}, {1, 8}, {1, 2, 4, 8, 16, 32}, {1, 8, 64}, {3, 5}, {4}, {128}}[static_cast<size_t>(Draw(0, 7))];
    const int64_t table = (shape_.max_context + shape_.block_tokens - 1) / shape_.block_tokens;
    // From less than one context to all that all sequences can need.
    shape_.blocks = 1 + (Chance(70) ? Draw(std::max<int64_t>(1, table / 2), 2 * table) : table * shape_.max_sequences);
    options_.max_prefill_rows = Pick({1, 3, 8, 64});
    options_.max_waiting = Pick({0, 2, 100, 100});
    options_.prefix_cache = Chance(85);
    options_.step_overhead_rows = Pick({0, 4, 16});
    fails_ = Chance(10);
    std::vector<std::vector<int32_t>> beginnings(3);
    for (auto& tokens : beginnings) tokens = Tokens(shape_.max_context);
    const int64_t longest_pause = Pick({0, 5, 60});
    // Tokens that a request may have, with the last one.
    const int64_t most = std::min(shape_.max_context, (shape_.blocks - 1) * shape_.block_tokens + 1);
    int64_t now = 0;
    for (int64_t i = Draw(1, 24); i > 0; --i) {
      Client& client = clients_.emplace_back();
      now += Draw(0, longest_pause);
      client.arrives = now;
      if (Chance(20)) client.cancels = now + Draw(0, 200);
      const int64_t prompt = Draw(1, std::max<int64_t>(1, Chance(60) ? most / 4 : most - 1));
      client.request.prompt = Tokens(prompt);
      const auto& beginning = beginnings[static_cast<size_t>(Draw(0, 2))];
      std::copy_n(beginning.begin(), Draw(0, prompt), client.request.prompt.begin());
      client.request.max_new_tokens = Draw(1, most - prompt) + (Chance(3) ? most : 0);
      client.request.sampling = {static_cast<float>(Draw(0, 2)), static_cast<int32_t>(Draw(0, 3)), 0.5F,
                                 static_cast<uint64_t>(Draw(0, 1)), 0};
      if (Chance(50)) client.request.end_tokens = {0};
    }
  }

  void Run(Seen* seen) {
    auto made = Scheduler::Create(shape_, options_);
    ASSERT_TRUE(made.ok()) << made.status();
    scheduler_ = *std::move(made);
    FakePagedModel model(shape_);
    while (true) {
      DeliverUntil(now_);
      const std::optional<StepBatch> batch = scheduler_->Next();
      if (!batch.has_value()) {
        ASSERT_TRUE(scheduler_->idle());
        const int64_t next = NextEvent();
        if (next == INT64_MAX) break;
        now_ = next;
        continue;
      }
      ++steps_;
      CheckStep(*batch, seen);
      NoteAdmitted();
      if (testing::Test::HasFailure()) return;
      now_ += Draw(1, 20);
      // Those who come or leave while the step runs.
      DeliverUntil(now_ - 1);
      if (fails_ && Chance(5)) {
        model.Spoil(*batch);
        for (const uint64_t id : scheduler_->Fail()) ById(id).ended = FinishReason::kFailed;
      } else {
        std::vector<SampledToken> sampled;
        const absl::Status status = model.Step(*batch, sampled);
        ASSERT_TRUE(status.ok()) << status;
        for (const Progress& progress : scheduler_->Finish(sampled)) {
          Client& client = ById(progress.id);
          ASSERT_FALSE(client.ended.has_value());
          client.tokens.push_back(progress.sampled.token);
          client.ended = progress.ended;
        }
      }
      for (const int32_t block : scheduler_->pool().free_blocks()) model.SpoilBlock(block);
      CheckBlocks();
      for (const auto& [id, i] : by_id_) {
        const Client& client = clients_[i];
        if (client.ended.has_value() || !client.last_step.has_value()) continue;
        ASSERT_LT(steps_, *client.last_step) << "request " << id << " starves";
      }
    }
    EXPECT_EQ(scheduler_->pool().owned(), 0);
    CheckAnswers(seen);
    seen->preemptions += scheduler_->preemptions();
    seen->hits += scheduler_->prefix_hits();
  }

 private:
  int64_t Draw(int64_t from, int64_t to) {
    return from + static_cast<int64_t>(random_() % static_cast<uint64_t>(std::max<int64_t>(1, to - from + 1)));
  }
  bool Chance(int64_t percent) { return Draw(0, 99) < percent; }
  int64_t Pick(std::vector<int64_t> values) {
    return values[static_cast<size_t>(Draw(0, static_cast<int64_t>(values.size()) - 1))];
  }
  std::vector<int32_t> Tokens(int64_t count) {
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < count; ++i) {
      tokens.push_back(static_cast<int32_t>(Draw(0, FakePagedModel::kVocabulary - 1)));
    }
    return tokens;
  }

  Client& ById(uint64_t id) { return clients_[by_id_.at(id)]; }

  int64_t NextEvent() const {
    int64_t next = INT64_MAX;
    for (const Client& client : clients_) {
      if (!client.submitted) next = std::min(next, client.arrives);
    }
    return next;
  }

  void DeliverUntil(int64_t time) {
    for (size_t i = 0; i < clients_.size(); ++i) {
      Client& client = clients_[i];
      if (!client.submitted && client.arrives <= time) Submit(i);
      if (client.submitted && !client.refused && !client.ended.has_value() && client.cancels <= time) {
        EXPECT_TRUE(scheduler_->Cancel(id_of_.at(i)));
        EXPECT_FALSE(scheduler_->Cancel(id_of_.at(i)));
        client.ended = FinishReason::kCancelled;
      }
    }
  }

  void Submit(size_t i) {
    Client& client = clients_[i];
    client.submitted = true;
    const int64_t tokens = static_cast<int64_t>(client.request.prompt.size()) + client.request.max_new_tokens;
    const int64_t needed = (tokens - 1 + shape_.block_tokens - 1) / shape_.block_tokens;
    const auto id = scheduler_->Submit(client.request);
    if (tokens > shape_.max_context || needed > shape_.blocks - 1) {
      EXPECT_EQ(id.status().code(), absl::StatusCode::kInvalidArgument);
      client.refused = true;
      return;
    }
    const auto waiting = static_cast<int64_t>(scheduler_->waiting().size());
    const auto running = static_cast<int64_t>(scheduler_->running().size());
    if (!id.ok()) {
      EXPECT_EQ(id.status().code(), absl::StatusCode::kResourceExhausted);
      EXPECT_GE(waiting, options_.max_waiting + shape_.max_sequences - running);
      client.refused = true;
      return;
    }
    EXPECT_LE(waiting, options_.max_waiting + shape_.max_sequences - running);
    by_id_[*id] = i;
    id_of_[i] = *id;
  }

  void CheckStep(const StepBatch& batch, Seen* seen) {
    const int64_t most = shape_.buckets.back();
    int64_t rows = 0, prefill = 0, decoding = 0, left_out = 0, prompts = 0, sequences = 0;
    std::map<int32_t, int> writers;
    for (const auto& sequence : scheduler_->running()) {
      const bool decodes = sequence->decodes();
      decoding += decodes ? 1 : 0;
      prompts += decodes ? 0 : 1;
      if (decodes && sequence->rows == 0) ++left_out;
      if (sequence->rows == 0) continue;
      if (decodes) ASSERT_EQ(sequence->rows, 1);
      const auto r = static_cast<size_t>(sequences++);
      ASSERT_EQ(batch.rows[r + 1] - batch.rows[r], sequence->rows);
      ASSERT_EQ(batch.lengths[r], sequence->cached + sequence->rows);
      ASSERT_EQ(batch.wants_token[r], batch.lengths[r] == sequence->size());
      rows += sequence->rows;
      if (!decodes) prefill += sequence->rows;
      if (!batch.wants_token[r]) ++seen->chunks;
      ASSERT_EQ(static_cast<int64_t>(sequence->blocks.size()), BlocksFor(batch.lengths[r]));
      for (int64_t k = sequence->cached / shape_.block_tokens; k < BlocksFor(batch.lengths[r]); ++k) {
        const int32_t block = sequence->blocks[static_cast<size_t>(k)];
        ASSERT_EQ(++writers[block], 1);
        ASSERT_EQ(scheduler_->pool().references(block), 1) << "a block is written that is shared";
        ASSERT_FALSE(scheduler_->pool().prefixes().Holds(block)) << "a block is written that may become shared";
      }
    }
    ASSERT_EQ(batch.rows.back(), rows);
    ASSERT_GT(rows, 0);
    // The smallest bucket that has the rows.
    ASSERT_EQ(batch.bucket, *std::lower_bound(shape_.buckets.begin(), shape_.buckets.end(), rows));
    if (decoding > 0) ASSERT_LE(prefill, options_.max_prefill_rows);
    if (decoding + (prompts > 0 ? 1 : 0) <= most) {
      ASSERT_EQ(left_out, 0) << "a sequence got no row";
    } else {
      ASSERT_EQ(rows, most);
      ++seen->turns;
    }
  }

  // While a request is the oldest it loses no block, and has a row at least each time that all had their turn.
  void NoteAdmitted() {
    const int64_t turn = (shape_.max_sequences + shape_.buckets.back() - 1) / shape_.buckets.back();
    int64_t tokens = 0;
    for (const auto& sequence : scheduler_->running()) {
      tokens += sequence->prompt_tokens + sequence->max_new_tokens;
      Client& client = ById(sequence->id);
      if (!client.last_step.has_value()) client.last_step = steps_ + tokens * turn;
    }
  }

  // Each block is free, cached or owned by whom it counts.
  void CheckBlocks() {
    const BlockPool& pool = scheduler_->pool();
    std::vector<int32_t> owners(static_cast<size_t>(shape_.blocks)), free(static_cast<size_t>(shape_.blocks));
    uint64_t before = 0;
    for (const auto& sequence : scheduler_->running()) {
      ASSERT_LT(before, sequence->id);
      before = sequence->id;
      ASSERT_EQ(sequence->rows, 0);
      ASSERT_EQ(static_cast<int64_t>(sequence->blocks.size()), BlocksFor(sequence->cached));
      for (const int32_t block : sequence->blocks) ++owners[static_cast<size_t>(block)];
    }
    for (const auto& sequence : scheduler_->waiting()) {
      ASSERT_LT(before, sequence->id);
      before = sequence->id;
      ASSERT_TRUE(sequence->blocks.empty());
      ASSERT_EQ(sequence->cached, 0);
    }
    for (const int32_t block : pool.free_blocks()) ++free[static_cast<size_t>(block)];
    ASSERT_EQ(owners[0] + free[0], 0) << "the null block is in use";
    int64_t cached = 0, owned = 0;
    for (int32_t block = 1; block < shape_.blocks; ++block) {
      const auto i = static_cast<size_t>(block);
      ASSERT_EQ(pool.references(block), owners[i]) << "block " << block;
      const bool holds = pool.prefixes().Holds(block);
      ASSERT_EQ(free[i], owners[i] == 0 && !holds ? 1 : 0) << "block " << block;
      cached += owners[i] == 0 && holds ? 1 : 0;
      owned += owners[i] > 0 ? 1 : 0;
    }
    ASSERT_EQ(pool.prefixes().idle(), cached);
    ASSERT_EQ(pool.owned(), owned);
  }

  void CheckAnswers(Seen* seen) {
    for (const Client& client : clients_) {
      ASSERT_TRUE(client.submitted);
      if (client.refused) {
        ++seen->refused;
        continue;
      }
      ASSERT_TRUE(client.ended.has_value());
      std::vector<int32_t> alone = FakePagedModel::GenerateAlone(client.request);
      const bool stopped = !client.request.end_tokens.empty() && alone.back() == client.request.end_tokens[0];
      if (client.ended == FinishReason::kCancelled || client.ended == FinishReason::kFailed) {
        ++(client.ended == FinishReason::kFailed ? seen->failed : seen->cancelled);
        ASSERT_LT(client.tokens.size(), alone.size());
        alone.resize(client.tokens.size());
      } else {
        ASSERT_EQ(client.ended, stopped ? FinishReason::kStop : FinishReason::kLength);
      }
      ASSERT_EQ(client.tokens, alone);
    }
  }

  int64_t BlocksFor(int64_t tokens) const { return (tokens + shape_.block_tokens - 1) / shape_.block_tokens; }

  std::mt19937_64 random_;
  CacheShape shape_;
  SchedulerOptions options_;
  bool fails_ = false;
  std::vector<Client> clients_;
  std::map<uint64_t, size_t> by_id_;
  std::map<size_t, uint64_t> id_of_;
  std::unique_ptr<Scheduler> scheduler_;
  int64_t now_ = 0, steps_ = 0;
};

TEST(SchedulerSimulationTest, EachRequestGetsTheTokensThatItWouldGetAlone) {
  const char* nightly = std::getenv("BOWLINE_NIGHTLY");
  const uint64_t histories = nightly != nullptr && std::string(nightly) == "1" ? 10000 : 500;
  Seen seen;
  for (uint64_t seed = 0; seed < histories && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    History(seed).Run(&seen);
  }
  // All that may happen did.
  for (const uint64_t times :
       {seen.preemptions, seen.hits, seen.cancelled, seen.failed, seen.refused, seen.chunks, seen.turns}) {
    EXPECT_GT(times, 50u);
  }
}

}  // namespace
}  // namespace bowline::serve
