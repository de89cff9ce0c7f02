#ifndef BOWLINE_RUNTIME_SERVE_SCHEDULER_H_
#define BOWLINE_RUNTIME_SERVE_SCHEDULER_H_

// Decides which rows of which sequences a step computes. A state machine without clock, thread or input and output:
// requests arrive, are cancelled, and steps end; it answers with the next step.

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
  // Rows of prompts in a step while other sequences get tokens: bounds by how much a long prompt delays them.
  int64_t max_prefill_rows = 64;
  // Requests that may wait beyond those for which there is a place in the batch.
  int64_t max_waiting = 128;
  bool prefix_cache = true;
  // The time that a step takes whatever its rows, in rows. Prompts are cut so that a step computes most of their rows
  // for its time.
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
  int64_t cached = 0;           // tokens that the cache holds
  std::vector<int32_t> blocks;  // of the cache, in the order of the tokens
  int64_t rows = 0;             // of the step that is composed or runs
  uint64_t last_step = 0;       // the last step with rows of it
  bool preempted = false;       // at least once

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  // One row gives its next token; more than one: a prompt, or a text that has to be computed again.
  bool decodes() const { return size() - cached == 1; }
};

// A token that a step gave to a sequence. An end token ends it with kStop, and none, -1, with kFailed.
struct Progress {
  uint64_t id = 0;
  SampledToken sampled;
  std::optional<FinishReason> ended;
};

class Scheduler {
 public:
  // kInvalidArgument for a shape or options that no step could satisfy.
  static absl::StatusOr<std::unique_ptr<Scheduler>> Create(CacheShape shape, SchedulerOptions options);

  // Gives the request's id. kInvalidArgument for one that can never be computed, kResourceExhausted where too many
  // wait.
  absl::StatusOr<uint64_t> Submit(SequenceRequest request);
  // Ends a request, whatever its state; false where there is none of this id. Its blocks may be owned by others from
  // the next call of Next on, hence when a step that is running has ended.
  bool Cancel(uint64_t id);

  // The next step; nothing where there is no request. The step ends by Finish or Fail, before Next is called again.
  std::optional<StepBatch> Next();
  // `sampled` has an entry per sequence of the step.
  std::vector<Progress> Finish(absl::Span<const SampledToken> sampled);
  // The step failed: its results are unknown, and its sequences end. Gives their ids.
  std::vector<uint64_t> Fail();

  const CacheShape& shape() const { return shape_; }
  const BlockPool& pool() const { return pool_; }
  // In the order of arrival; running sequences arrived before waiting ones.
  const std::vector<std::unique_ptr<Sequence>>& running() const { return running_; }
  const std::deque<std::unique_ptr<Sequence>>& waiting() const { return waiting_; }
  bool idle() const { return running_.empty() && waiting_.empty(); }
  uint64_t preemptions() const { return preemptions_; }
  // Tokens of prompts that were looked up in the prefix cache, and those that it had.
  uint64_t prefix_queries() const { return prefix_queries_; }
  uint64_t prefix_hits() const { return prefix_hits_; }

 private:
  Scheduler(CacheShape shape, SchedulerOptions options);

  int64_t BlocksFor(int64_t tokens) const;
  Sequence* FindRunning(uint64_t id) const;
  // Lets requests run as long as there are places and blocks, first come, first served.
  void Admit();
  // Gives sequences the blocks of their prompts that others have computed since.
  void CatchUp(Sequence& sequence);
  // Whether an older prompt is about to compute the block of this one that comes next, so that this one waits for it.
  bool Follows(const Sequence& sequence) const;
  // Gives one row to each decoding sequence, and one to the oldest sequence that does not decode yet. If a step has
  // fewer rows than there are such sequences, they take turns over several steps. Returns false where it preempted a
  // sequence to free a block for another one; the caller then calls Select again, with fewer running sequences.
  bool Select();
  // Fills the step with further rows of prompts, and gives its bucket.
  int64_t Extend();
  int64_t ChooseBucket(int64_t decoding, int64_t selected, int64_t wanted) const;
  // Takes blocks for so many tokens, if need be from the youngest. False where the sequence itself was the youngest.
  bool Reserve(Sequence& sequence, int64_t tokens);
  // Takes the youngest's blocks; it goes back to the head of the queue and is computed again.
  void PreemptYoungest();
  void ReleaseBlocks(Sequence& sequence);
  void Remove(const Sequence* sequence);
  // Makes the blocks known that became full since `before` tokens were cached. One whose tokens another block holds
  // already is given back for that one.
  void ShareFullBlocks(Sequence& sequence, int64_t before);
  StepBatch MakeBatch(int64_t bucket);

  CacheShape shape_;
  SchedulerOptions options_;
  BlockPool pool_;
  std::vector<std::unique_ptr<Sequence>> running_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<uint64_t> step_;  // the sequences of the step that runs; empty: none does
  uint64_t requests_ = 0, steps_ = 0;
  uint64_t preemptions_ = 0, prefix_queries_ = 0, prefix_hits_ = 0;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_SCHEDULER_H_
