#ifndef BOWLINE_RUNTIME_DRIVERS_HOST_HOST_EVENT_H_
#define BOWLINE_RUNTIME_DRIVERS_HOST_HOST_EVENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/base/progress_counter.h"
#include "runtime/hal/event.h"

namespace bowline {

// A point of a stream whose commands run on threads of the host: the number of commands that must have run. Recording
// therefore needs no command of its own, except for a time stamp. The event may outlive the stream.
class HostEvent : public hal::Event {
 public:
  explicit HostEvent(hal::EventMode mode) : timed_(mode == hal::EventMode::kTimed) {}

  bool timed() const { return timed_; }
  bool recorded() const override { return recorded_; }
  absl::Status Await() const override;
  absl::StatusOr<int64_t> Time() const override;

  // A null `finished` means that the point is already reached.
  void Record(std::shared_ptr<ProgressCounter> finished, uint64_t position);
  const std::shared_ptr<ProgressCounter>& finished() const { return finished_; }
  uint64_t position() const { return position_; }

  // Called on the stream's thread when the stream has reached the point.
  void Stamp();

 private:
  const bool timed_;
  bool recorded_ = false;
  std::shared_ptr<ProgressCounter> finished_;
  uint64_t position_ = 0;
  std::atomic<int64_t> time_{0};
};

// Returns kFailedPrecondition for an event that was never recorded.
absl::Status CheckRecorded(const hal::Event& event);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_HOST_HOST_EVENT_H_
