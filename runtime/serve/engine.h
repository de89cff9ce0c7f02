#ifndef BOWLINE_RUNTIME_SERVE_ENGINE_H_
#define BOWLINE_RUNTIME_SERVE_ENGINE_H_

// Continues texts of tokens, one request at a time, in the order in which they came.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/train/generator.h"

namespace bowline::serve {

enum class FinishReason : uint8_t {
  kStop,       // an end token, or whoever takes the tokens has what it wants
  kLength,     // as many tokens as were asked for, or as fit
  kCancelled,  // the client is gone, or the server stops
  kFailed,
};

struct Generation {
  std::vector<int32_t> prompt;  // not empty, and shorter than the context
  int64_t max_new_tokens = 0;   // at least 1
  double temperature = 1;       // 0 is greedy
  uint64_t seed = 0;
  std::vector<int32_t> end_tokens;
  // Called on the engine's thread with each token that is no end token; false when that is enough.
  std::function<bool(int32_t)> take;
  // Called once, on the engine's thread, behind all tokens.
  std::function<void(FinishReason, const absl::Status&)> finish;
};

// Continues a text; see Generator::Generate.
using GenerateFunction =
    std::function<absl::Status(absl::Span<const int32_t> prompt, const GenerateOptions& options,
                               absl::FunctionRef<absl::Status(int32_t)> write, const std::atomic<bool>& stop)>;

struct EngineCounts {
  uint64_t prompt_tokens = 0, new_tokens = 0;                   // of all requests so far
  uint64_t stopped = 0, length = 0, cancelled = 0, failed = 0;  // requests by how they ended
  uint64_t running = 0, waiting = 0;                            // now
};

// A request that is waiting or running; Cancel ends it.
class Ticket {
 public:
  void Cancel() { cancelled_ = true; }

 private:
  friend class Engine;
  explicit Ticket(Generation generation) : generation_(std::move(generation)) {}
  Generation generation_;
  std::atomic<bool> cancelled_ = false;
};

class Engine {
 public:
  // At most `most_waiting` requests wait for the one that runs. `generate` is called on the engine's thread alone.
  Engine(GenerateFunction generate, size_t most_waiting);
  // Cancels what runs and waits, and waits for it.
  ~Engine();

  // kResourceExhausted when too many wait, kUnavailable when the engine drains.
  absl::StatusOr<std::shared_ptr<Ticket>> Submit(Generation generation);

  // Takes no more requests; `drained` runs on the engine's thread once all have ended.
  void Drain(std::function<void()> drained);
  // Cancels what runs and waits.
  void CancelAll();

  EngineCounts counts() const;

 private:
  void Run();
  void Serve(Ticket& ticket);

  const GenerateFunction generate_;
  const size_t most_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Ticket>> waiting_;
  std::shared_ptr<Ticket> running_;
  std::function<void()> drained_;
  bool drains_ = false, ends_ = false;
  EngineCounts counts_;
  std::thread thread_;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_ENGINE_H_
