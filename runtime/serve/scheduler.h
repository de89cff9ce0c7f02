#ifndef BOWLINE_RUNTIME_SERVE_SCHEDULER_H_
#define BOWLINE_RUNTIME_SERVE_SCHEDULER_H_

// Decides which rows of which sequences each step computes. A state machine without clock, threads or I/O: the caller
// reports new requests, cancellations and ends of steps, and gets the next step.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/serve/block_pool.h"
#include "runtime/serve/finish_reason.h"
#include "runtime/serve/step_batch.h"

namespace bowline::serve {

struct SchedulerOptions {
  // The most rows of prompts in a step while other sequences decode: bounds the delay that a long prompt causes them.
  int64_t max_prefill_rows = 64;
  // The most requests that may wait, besides those for which the batch has a place.
  int64_t max_waiting = 128;
  bool prefix_cache = true;
  // The fixed part of a step's time, in rows. The scheduler chooses the bucket that computes the most rows of prompts
  // per time, and cuts prompts to fit.
  int64_t step_overhead_rows = 16;
};

struct SequenceRequest {
  std::vector<int32_t> prompt;  // not empty
  int64_t max_new_tokens = 0;   // at least 1
  SequenceSampling sampling;
  std::vector<int32_t> end_tokens;
};

// A request that waits or runs.
struct Sequence {
  uint64_t id = 0;              // ascending in the order of arrival
  std::vector<int32_t> tokens;  // the prompt and the generated tokens
  int64_t prompt_tokens = 0, max_new_tokens = 0;
  SequenceSampling sampling;
  std::vector<int32_t> end_tokens;
  int64_t cached = 0;           // tokens whose keys and values the cache holds
  std::vector<int32_t> blocks;  // blocks of the cache, in the order of the tokens
  int64_t rows = 0;             // rows in the step that is composed or runs
  uint64_t last_step = 0;       // the last step that had rows of this sequence
  bool preempted = false;       // whether it was preempted at least once

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  // Returns whether one row gives the next token. If not: a prompt, or a text that has to be computed again.
  bool decodes() const { return size() - cached == 1; }
};

// A token that a step gave to a sequence, or -1 where its logits were not finite: then `ended` is kFailed. If the token
// was the last one, `ended` is kStop or kLength.
struct Progress {
  uint64_t id = 0;
  SampledToken sampled;
  std::optional<FinishReason> ended;
};

class Scheduler {
 public:
  // Returns kInvalidArgument for a shape or options with which no step is possible.
  static absl::StatusOr<std::unique_ptr<Scheduler>> Create(CacheShape shape, SchedulerOptions options);

  // Queues a request and returns its id. Returns kInvalidArgument if it can never be computed, kResourceExhausted if
  // too many requests wait.
  absl::StatusOr<uint64_t> Submit(SequenceRequest request);
  // Ends a request, whatever its state; false if none has this id. Other sequences may get its blocks from the next
  // call of Next on; a running step, which may still use them, has ended by then.
  bool Cancel(uint64_t id);

  // Composes the next step; absent if there is no request. Call Finish or Fail for that step before Next again.
  std::optional<StepBatch> Next();
  // Ends the step. sampled[r] is the token of the step's sequence r. Returns the tokens that sequences got.
  std::vector<Progress> Finish(absl::Span<const SampledToken> sampled);
  // Ends a step that failed: its results are unknown, so its sequences end. Returns their ids.
  std::vector<uint64_t> Fail();

  const CacheShape& shape() const { return shape_; }
  const BlockPool& pool() const { return pool_; }
  // In the order of arrival; running sequences arrived before waiting ones.
  const std::vector<std::unique_ptr<Sequence>>& running() const { return running_; }
  const std::deque<std::unique_ptr<Sequence>>& waiting() const { return waiting_; }
  bool idle() const { return running_.empty() && waiting_.empty(); }
  uint64_t preemptions() const { return preemptions_; }
  // The prompt tokens that were looked up in the prefix cache, and those that were found there.
  uint64_t prefix_queries() const { return prefix_queries_; }
  uint64_t prefix_hits() const { return prefix_hits_; }

 private:
  Scheduler(CacheShape shape, SchedulerOptions options);

  int64_t BlocksFor(int64_t tokens) const;
  Sequence* FindRunning(uint64_t id) const;
  // Starts waiting requests, first come, first served, as long as there are places and blocks.
  void Admit();
  // Gives the sequence the blocks of its prompt that other sequences have computed since.
  void CatchUp(Sequence& sequence);
  // Returns whether an older prompt is about to compute this sequence's next block, so that it waits for that block.
  bool Follows(const Sequence& sequence) const;
  // Gives one row to each decoding sequence, and one to the oldest sequence that does not decode yet. If a step has
  // fewer rows than there are such sequences, they take turns over several steps. Returns false where it preempted a
  // sequence to free a block for another one; the caller then calls Select again, with fewer running sequences.
  bool Select();
  // Adds further rows of prompts to the step, and returns the step's bucket.
  int64_t Extend();
  int64_t ChooseBucket(int64_t decoding, int64_t selected, int64_t wanted) const;
  // Gets blocks for this many tokens, preempting the youngest sequences if need be. False if it preempted this one.
  bool Reserve(Sequence& sequence, int64_t tokens);
  // Releases the blocks of the youngest sequence, and moves it to the head of the queue, to be computed again.
  void PreemptYoungest();
  void ReleaseBlocks(Sequence& sequence);
  void Remove(const Sequence* sequence);
  // Adds the blocks that became full since `before` tokens were cached to the prefix cache. If a block there already
  // has the same tokens, the sequence takes that block and releases its own.
  void ShareFullBlocks(Sequence& sequence, int64_t before);
  StepBatch MakeBatch(int64_t bucket);

  CacheShape shape_;
  SchedulerOptions options_;
  BlockPool pool_;
  std::vector<std::unique_ptr<Sequence>> running_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<uint64_t> step_;  // ids of the sequences in the running step; empty: no step runs
  uint64_t requests_ = 0, steps_ = 0;
  uint64_t preemptions_ = 0, prefix_queries_ = 0, prefix_hits_ = 0;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_SCHEDULER_H_
