#ifndef BOWLINE_RUNTIME_SERVE_BATCH_ENGINE_H_
#define BOWLINE_RUNTIME_SERVE_BATCH_ENGINE_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/serve/engine.h"
#include "runtime/serve/scheduler.h"
#include "runtime/serve/step_batch.h"

namespace bowline::serve {

// Computes many requests at a time: its thread runs the steps of a scheduler, one after another.
class BatchEngine final : public Engine {
 public:
  // Calls `step` on the engine's thread only. If a step fails, the requests with rows in it fail. If a sampled token is
  // -1, only its request fails. Errors are those of Scheduler::Create.
  static absl::StatusOr<std::unique_ptr<BatchEngine>> Create(CacheShape shape, SchedulerOptions options,
                                                             StepFunction step);
  ~BatchEngine() override;

  absl::StatusOr<std::vector<std::shared_ptr<Ticket>>> Submit(std::vector<Generation> generations) override;
  bool has_logprobs() const override { return true; }
  void Drain(std::function<void()> drained) override;
  void CancelAll() override;
  EngineCounts counts() const override;

 private:
  struct Request {
    std::shared_ptr<Ticket> ticket;
    uint64_t generated = 0;  // new tokens
    bool began = false;
  };
  // A request that has ended, and whose Generation::finish is to be called.
  struct Ended {
    std::shared_ptr<Ticket> ticket;
    FinishReason reason = FinishReason::kStop;
    absl::Status status;
  };

  BatchEngine(std::unique_ptr<Scheduler> scheduler, StepFunction step, int64_t most);

  void Run();
  // Runs a step. Holds the lock, except while the step runs and while clients are called.
  void RunStep(const StepBatch& batch, std::unique_lock<std::mutex>& lock);
  // Calls Generation::begin of the requests that have their first rows in the composed step.
  void TellBegun(std::unique_lock<std::mutex>& lock);
  void EndCancelled(std::unique_lock<std::mutex>& lock);
  // Removes a request that the scheduler has already removed, and counts its end.
  Ended End(uint64_t id, FinishReason reason, const absl::Status& status = absl::OkStatus());
  void Tell(const std::vector<Ended>& ended, std::unique_lock<std::mutex>& lock);

  const StepFunction step_;
  const int64_t most_;  // the most requests that run or wait
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<Scheduler> scheduler_;
  std::map<uint64_t, Request> requests_;  // the requests of the scheduler, by id
  std::function<void()> drained_;
  bool drains_ = false, ends_ = false;
  EngineCounts counts_;
  std::thread thread_;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_BATCH_ENGINE_H_
