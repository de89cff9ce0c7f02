#ifndef BOWLINE_RUNTIME_DRIVERS_CPU_CPU_WORKER_STREAM_H_
#define BOWLINE_RUNTIME_DRIVERS_CPU_CPU_WORKER_STREAM_H_

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/base/progress_counter.h"
#include "runtime/hal/stream.h"

namespace bowline {

// Runs its commands on a thread of its own. They are handed over through a ring of fixed size without a lock: one
// thread writes, the worker reads, each waits for the other's counter. A caller that is kCapacity commands ahead waits.
// Kernels with several threads run on a team of the worker, so a plan gives such streams to communication, or to
// compute on one thread.
class CpuWorkerStream : public hal::Stream {
 public:
  static constexpr uint64_t kCapacity = 1024;

  // kResourceExhausted when the system has no thread for it.
  static absl::StatusOr<std::unique_ptr<hal::Stream>> Create();

  // Runs what was issued first.
  ~CpuWorkerStream() override;
  CpuWorkerStream(const CpuWorkerStream&) = delete;
  CpuWorkerStream& operator=(const CpuWorkerStream&) = delete;

  absl::Status Launch(const hal::Launchable& launchable, absl::Span<void* const> arguments, void* scratch) override;
  absl::Status Copy(void* destination, const void* source, size_t bytes) override;
  absl::Status Call(const hal::HostCall& call) override;
  absl::Status Record(hal::Event& event) override;
  absl::Status Wait(const hal::Event& event) override;
  absl::Status Synchronize() override;
  std::optional<uint64_t> FailedCommand() const override { return failed_command_; }

 private:
  enum class Kind : uint8_t { kLaunch, kCopy, kCall, kWait, kStop };

  struct Command {
    Kind kind = Kind::kStop;
    const hal::Launchable* launchable = nullptr;
    absl::Span<void* const> arguments;
    void* destination = nullptr;  // of a copy, or a launch's scratch
    const void* source = nullptr;
    uint64_t size = 0;  // bytes of a copy, or the position that a wait is for
    hal::HostCall call;
    std::shared_ptr<ProgressCounter> finished;  // of the stream that a wait is for
  };

  CpuWorkerStream();

  Command& Next();
  void Issue();
  void Work();
  void Run(Command& command);

  std::vector<Command> ring_;
  uint64_t next_ = 0;  // commands issued, as the caller counts
  ProgressCounter issued_;
  // Shared with events, which may be waited for when the stream is gone.
  std::shared_ptr<ProgressCounter> finished_;
  // The worker's until everything issued is finished, then the caller's. Commands are counted without waits.
  absl::Status status_;
  uint64_t taken_ = 0;                      // since the last Synchronize
  uint64_t failed_place_ = 0;               // of the command that `status_` is of
  std::optional<uint64_t> failed_command_;  // of the last Synchronize
  std::thread worker_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CPU_CPU_WORKER_STREAM_H_
