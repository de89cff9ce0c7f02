#include "runtime/drivers/host/host_event.h"

#include <chrono>

namespace bowline {

absl::Status HostEvent::Await() const {
  if (finished_ != nullptr) finished_->WaitFor(position_);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> HostEvent::Time() const {
  if (!timed_) return absl::FailedPreconditionError("an event that was not made for its time has none");
  if (!recorded_) return absl::FailedPreconditionError("an event that no stream recorded has no time");
  if (finished_ != nullptr && finished_->value() < position_) {
    return absl::FailedPreconditionError("the stream has not come to an event whose time is asked for");
  }
  return time_.load(std::memory_order_relaxed);
}

void HostEvent::Record(std::shared_ptr<ProgressCounter> finished, uint64_t position) {
  recorded_ = true;
  finished_ = std::move(finished);
  position_ = position;
}

void HostEvent::Stamp() {
  time_.store(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1),
              std::memory_order_relaxed);
}

absl::Status CheckRecorded(const hal::Event& event) {
  if (event.recorded()) return absl::OkStatus();
  return absl::FailedPreconditionError("a stream waits for an event that no stream recorded");
}

}  // namespace bowline
