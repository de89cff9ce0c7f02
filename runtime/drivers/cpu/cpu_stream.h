#ifndef BOWLINE_RUNTIME_DRIVERS_CPU_CPU_STREAM_H_
#define BOWLINE_RUNTIME_DRIVERS_CPU_CPU_STREAM_H_

#include "runtime/hal/stream.h"

namespace bowline {

class CpuEvent : public hal::Event {
 public:
  bool recorded() const override { return recorded_; }
  void set_recorded() { recorded_ = true; }

 private:
  bool recorded_ = false;
};

// Runs each command before it returns, on the caller and the kernels' thread pool. Streams of one CPU are therefore
// ordered as they are issued, which satisfies every wait.
class CpuStream : public hal::Stream {
 public:
  absl::Status Launch(const hal::Launchable& launchable, absl::Span<void* const> arguments, void* scratch) override;
  absl::Status Copy(void* destination, const void* source, size_t bytes) override;
  absl::Status Record(hal::Event& event) override;
  absl::Status Wait(const hal::Event& event) override;
  absl::Status Synchronize() override { return absl::OkStatus(); }
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CPU_CPU_STREAM_H_
