#ifndef BOWLINE_RUNTIME_SERVE_ENGINE_H_
#define BOWLINE_RUNTIME_SERVE_ENGINE_H_

// Engines continue prompts with generated tokens. Any thread may submit requests.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/serve/finish_reason.h"
#include "runtime/serve/histogram.h"
#include "runtime/serve/step_batch.h"

namespace bowline::serve {

struct Generation {
  std::vector<int32_t> prompt;  // not empty, and shorter than the context
  int64_t max_new_tokens = 0;   // at least 1
  double temperature = 1;       // 0 is greedy
  int32_t top_k = 0;            // number of most likely tokens to choose from; 0: all
  double top_p = 1;             // choose from the most likely tokens that have this probability together; 1: all
  uint64_t seed = 0;
  int32_t top_logprobs = 0;  // number of most likely tokens that `take` gets with each token
  std::vector<int32_t> end_tokens;
  // Called once, on the engine's thread, before the first step that computes this request; may be null.
  std::function<void()> begin = nullptr;
  // Called on the engine's thread with each generated token that is no end token. Returns false to end the request.
  std::function<bool(const SampledToken&)> take;
  // Called once, on the engine's thread, after all tokens.
  std::function<void(FinishReason, const absl::Status&)> finish;
};

struct EngineCounts {
  uint64_t prompt_tokens = 0, new_tokens = 0;                   // of all requests that ended
  uint64_t stopped = 0, length = 0, cancelled = 0, failed = 0;  // requests by how they ended
  uint64_t running = 0, waiting = 0;                            // now
  // Counts of a paged cache; 0 if the engine has none.
  uint64_t blocks_used = 0, blocks_total = 0;  // now; cached blocks without an owner are not used
  uint64_t preemptions = 0;
  uint64_t prefix_queries = 0, prefix_hits = 0;  // prompt tokens looked up, and found
  Histogram step_tokens{kEndsOfStepTokens};      // tokens that each step computed

  // Counts a request that ended.
  void AddEnded(FinishReason reason, uint64_t prompt, uint64_t generated) {
    prompt_tokens += prompt;
    new_tokens += generated;
    ++(reason == FinishReason::kStop        ? stopped
       : reason == FinishReason::kLength    ? length
       : reason == FinishReason::kCancelled ? cancelled
                                            : failed);
  }
};

// A request that waits or runs. Cancel makes the engine end it with kCancelled.
class Ticket {
 public:
  explicit Ticket(Generation generation) : generation_(std::move(generation)) {}

  void Cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }
  const Generation& generation() const { return generation_; }

 private:
  const Generation generation_;
  std::atomic<bool> cancelled_ = false;
};

class Engine {
 public:
  // Cancels running and waiting requests, and waits for their end.
  virtual ~Engine() = default;

  // Accepts all requests or none, and returns a ticket for each. Returns kOutOfRange if they are more than the engine
  // computes and queues at once, kInvalidArgument if it can never compute them, kResourceExhausted if too many requests
  // wait, kUnavailable after Drain.
  virtual absl::StatusOr<std::vector<std::shared_ptr<Ticket>>> Submit(std::vector<Generation> generations) = 0;

  // Returns whether the engine supports top_k, top_p and log probabilities. If not, requests must not use them.
  virtual bool has_logprobs() const = 0;

  // Accepts no more requests. Calls `drained` on the engine's thread once all requests have ended.
  virtual void Drain(std::function<void()> drained) = 0;
  // Cancels running and waiting requests.
  virtual void CancelAll() = 0;

  virtual EngineCounts counts() const = 0;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_ENGINE_H_
