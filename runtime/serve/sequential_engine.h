#ifndef BOWLINE_RUNTIME_SERVE_SEQUENTIAL_ENGINE_H_
#define BOWLINE_RUNTIME_SERVE_SEQUENTIAL_ENGINE_H_

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
#include "runtime/serve/engine.h"
#include "runtime/train/generator.h"

namespace bowline::serve {

// Continues a text; see Generator::Generate.
using GenerateFunction =
    std::function<absl::Status(absl::Span<const int32_t> prompt, const GenerateOptions& options,
                               absl::FunctionRef<absl::Status(int32_t)> write, const std::atomic<bool>& stop)>;

// Computes one request at a time, in the order of arrival.
class SequentialEngine final : public Engine {
 public:
  // At most `most_waiting` requests wait for the running one. Calls `generate` on the engine's thread only.
  SequentialEngine(GenerateFunction generate, size_t most_waiting);
  ~SequentialEngine() override;

  absl::StatusOr<std::vector<std::shared_ptr<Ticket>>> Submit(std::vector<Generation> generations) override;
  bool has_logprobs() const override { return false; }
  void Drain(std::function<void()> drained) override;
  void CancelAll() override;
  EngineCounts counts() const override;

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

#endif  // BOWLINE_RUNTIME_SERVE_SEQUENTIAL_ENGINE_H_
