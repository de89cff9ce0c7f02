#ifndef BOWLINE_RUNTIME_DRIVERS_CPU_CPU_STREAM_H_
#define BOWLINE_RUNTIME_DRIVERS_CPU_CPU_STREAM_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/base/progress_counter.h"
#include "runtime/hal/stream.h"

namespace bowline {

// How many commands of a stream must have run, so that recording needs no command of its own. It outlives the stream.
class CpuEvent : public hal::Event {
 public:
  bool recorded() const override { return recorded_; }

  // `finished` null: reached already.
  void Record(std::shared_ptr<ProgressCounter> finished, uint64_t position) {
    recorded_ = true;
    finished_ = std::move(finished);
    position_ = position;
  }
  const std::shared_ptr<ProgressCounter>& finished() const { return finished_; }
  uint64_t position() const { return position_; }

 private:
  bool recorded_ = false;
  std::shared_ptr<ProgressCounter> finished_;
  uint64_t position_ = 0;
};

// kFailedPrecondition for an event that was never recorded.
absl::Status CheckRecorded(const hal::Event& event);

// Runs each command before it returns, on the caller and its team of threads (kernels/cpu/parallel). Such streams of
// one thread are therefore ordered as they are issued; a wait for an event of a worker's stream blocks the caller.
class CpuStream : public hal::Stream {
 public:
  absl::Status Launch(const hal::Launchable& launchable, absl::Span<void* const> arguments, void* scratch) override;
  absl::Status Copy(void* destination, const void* source, size_t bytes) override;
  absl::Status Call(const hal::HostCall& call) override { return call.run(call); }
  absl::Status Record(hal::Event& event) override;
  absl::Status Wait(const hal::Event& event) override;
  absl::Status Synchronize() override { return absl::OkStatus(); }
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CPU_CPU_STREAM_H_
