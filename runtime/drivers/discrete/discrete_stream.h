#ifndef BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_STREAM_H_
#define BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_STREAM_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/drivers/discrete/discrete_launchable.h"
#include "runtime/drivers/discrete/discrete_memory.h"
#include "runtime/drivers/discrete/discrete_scheduler.h"
#include "runtime/hal/event.h"
#include "runtime/hal/stream.h"

namespace bowline {

// A point of a stream: how many of its commands must have run. It may outlive the stream.
class DiscreteEvent : public hal::Event {
 public:
  DiscreteEvent(DiscreteScheduler* scheduler, hal::EventMode mode)
      : scheduler_(scheduler), is_timed_(mode == hal::EventMode::kTimed) {}

  bool recorded() const override { return point_.finished != nullptr; }
  absl::Status Await() const override;
  absl::StatusOr<int64_t> Time() const override;

 private:
  friend class DiscreteStream;

  struct Point {
    std::shared_ptr<const uint64_t> finished;  // commands of the stream that have run
    uint64_t position = 0;

    // Called with the mutex held.
    bool is_reached() const { return finished == nullptr || *finished >= position; }
  };

  DiscreteScheduler* scheduler_;
  const bool is_timed_;
  Point point_;
  int64_t time_ = 0;
};

// A queue of commands, whose addresses are translated when they run. A caller that is kCapacity commands ahead runs
// some of the device's.
class DiscreteStream : public hal::Stream, private CommandQueue {
 public:
  static constexpr uint64_t kCapacity = 4096;

  // `scheduler` and `memory` outlive it. Returns kResourceExhausted if the system has no thread for calls of the host.
  static absl::StatusOr<std::unique_ptr<hal::Stream>> Create(DiscreteScheduler* scheduler, const DiscreteMemory* memory,
                                                             const Draws& draws, uint64_t seed);

  // Runs all issued commands first.
  ~DiscreteStream() override;
  DiscreteStream(const DiscreteStream&) = delete;
  DiscreteStream& operator=(const DiscreteStream&) = delete;

  absl::Status Launch(const hal::Launchable& launchable, const hal::Geometry& geometry,
                      absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch) override;
  absl::Status Copy(hal::DeviceAddress destination, hal::DeviceAddress source, size_t bytes) override;
  absl::Status Call(const hal::HostCall& call) override;
  absl::Status Record(hal::Event& event) override;
  absl::Status Wait(const hal::Event& event) override;
  absl::Status Synchronize() override;
  std::optional<uint64_t> FailedLabel() const override { return failed_label_; }
  bool HasFailed() const override;

 private:
  enum class Kind : uint8_t { kLaunch, kCopy, kCall, kStamp, kWait };

  struct Command {
    Kind kind = Kind::kLaunch;
    uint64_t label = 0;
    const hal::Launchable* launchable = nullptr;
    const hal::Geometry* geometry = nullptr;
    absl::Span<const hal::DeviceAddress> arguments;
    hal::DeviceAddress destination = 0;  // a copy's destination, or a launch's scratch
    hal::DeviceAddress source = 0;
    uint64_t bytes = 0;
    hal::HostCall call;
    DiscreteEvent* event = nullptr;  // for a stamp
    DiscreteEvent::Point point;      // of a wait
  };

  DiscreteStream(DiscreteScheduler* scheduler, const DiscreteMemory* memory, const Draws& draws, uint64_t seed);

  bool MayRun() const override;
  void RunFront(std::unique_lock<std::mutex>& lock) override;
  const Draws& draws() const override { return draws_; }

  void Issue(Command command);
  Command& Front() { return ring_[*finished_ % kCapacity]; }
  void Finish(const absl::Status& status);
  absl::Status DoLaunch(const Command& command);
  absl::Status DoCopy(const Command& command);
  void RunCalls();

  DiscreteScheduler* scheduler_;
  const DiscreteMemory* memory_;
  Draws draws_;
  GridWorkspace workspace_;
  std::vector<void*> pointers_;
  // The members below are guarded by DeviceActivity's mutex, but for the label of the last Synchronize.
  std::vector<Command> ring_;
  uint64_t issued_ = 0;
  std::shared_ptr<uint64_t> finished_ = std::make_shared<uint64_t>(0);
  absl::Status status_;
  uint64_t status_label_ = 0;  // the label of the command that failed with `status_`
  std::optional<uint64_t> failed_label_;
  bool is_calling_ = false;  // the command at the front is a call that the thread runs
  bool is_over_ = false;
  std::condition_variable has_call_;
  std::thread caller_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_STREAM_H_
