#ifndef BOWLINE_RUNTIME_DRIVERS_HOST_WORKER_STREAM_H_
#define BOWLINE_RUNTIME_DRIVERS_HOST_WORKER_STREAM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/base/progress_counter.h"
#include "runtime/drivers/host/host_event.h"
#include "runtime/hal/stream.h"

namespace bowline {

// The functions of a device that a stream calls on the stream's thread, for each command in turn.
class CommandRunner {
 public:
  virtual ~CommandRunner() = default;

  // Is called before each command, including waits for events.
  virtual void Begin() {}
  virtual absl::Status Launch(const hal::Launchable& launchable, const hal::Geometry& geometry,
                              absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch) = 0;
  virtual absl::Status Copy(hal::DeviceAddress destination, hal::DeviceAddress source, size_t bytes) = 0;
};

// Runs its commands on a thread of its own. They are handed over through a ring of fixed size without a lock: one
// thread writes, the worker reads, each waits for the other's counter. A caller that is kCapacity commands ahead waits.
// Kernels with several threads run on a team of the worker, so a plan gives such streams to communication, or to
// compute on one thread.
class WorkerStream : public hal::Stream {
 public:
  static constexpr uint64_t kCapacity = 1024;

  // Returns kResourceExhausted when the system has no thread for it.
  static absl::StatusOr<std::unique_ptr<hal::Stream>> Create(std::unique_ptr<CommandRunner> runner);

  // Runs all issued commands first.
  ~WorkerStream() override;
  WorkerStream(const WorkerStream&) = delete;
  WorkerStream& operator=(const WorkerStream&) = delete;

  absl::Status Launch(const hal::Launchable& launchable, const hal::Geometry& geometry,
                      absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch) override;
  absl::Status Copy(hal::DeviceAddress destination, hal::DeviceAddress source, size_t bytes) override;
  absl::Status Call(const hal::HostCall& call) override;
  absl::Status Record(hal::Event& event) override;
  absl::Status Wait(const hal::Event& event) override;
  absl::Status Synchronize() override;
  std::optional<uint64_t> FailedLabel() const override { return failed_label_; }
  bool HasFailed() const override { return has_failed_.load(std::memory_order_acquire); }

 private:
  enum class Kind : uint8_t { kLaunch, kCopy, kCall, kStamp, kWait, kStop };

  struct Command {
    Kind kind = Kind::kStop;
    uint64_t label = 0;
    const hal::Launchable* launchable = nullptr;
    const hal::Geometry* geometry = nullptr;
    absl::Span<const hal::DeviceAddress> arguments;
    hal::DeviceAddress destination = 0;  // a copy's destination, or a launch's scratch
    hal::DeviceAddress source = 0;
    uint64_t size = 0;  // bytes of a copy, or the position that a wait is for
    hal::HostCall call;
    HostEvent* event = nullptr;                 // for a stamp
    std::shared_ptr<ProgressCounter> finished;  // counts commands of the stream that a wait is for
  };

  explicit WorkerStream(std::unique_ptr<CommandRunner> runner);

  Command& Next(Kind kind);
  void Issue();
  void Work();
  void Run(Command& command);
  absl::Status Do(const Command& command);

  std::unique_ptr<CommandRunner> runner_;
  std::vector<Command> ring_;
  uint64_t next_ = 0;  // commands issued, as the caller counts
  ProgressCounter issued_;
  // Shared with events, which may be waited for when the stream is gone.
  std::shared_ptr<ProgressCounter> finished_;
  // The worker's until everything issued is finished, then the caller's.
  absl::Status status_;
  uint64_t status_label_ = 0;             // the label of the command that failed with `status_`
  std::atomic<bool> has_failed_{false};   // whether `status_` is an error, for the caller at any time
  std::optional<uint64_t> failed_label_;  // for the last Synchronize
  std::thread worker_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_HOST_WORKER_STREAM_H_
