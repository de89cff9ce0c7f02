#ifndef BOWLINE_RUNTIME_COMM_CONTROL_TIMING_H_
#define BOWLINE_RUNTIME_COMM_CONTROL_TIMING_H_

#include <algorithm>
#include <chrono>
#include <utility>

namespace bowline {

using Clock = std::chrono::steady_clock;

// Times that follow from `timeout`, the longest time that an operation may wait.
struct ControlTiming {
  std::chrono::nanoseconds timeout;

  // The time between two signs of life.
  std::chrono::nanoseconds beat() const {
    return std::clamp<std::chrono::nanoseconds>(timeout / 10, std::chrono::milliseconds(10), std::chrono::seconds(1));
  }
  // The time without a sign of life after which a rank is asked and then taken for stopped. It ends before operations
  // that wait for the rank end by their own timeout, with which less is known about the cause.
  std::chrono::nanoseconds silence() const { return timeout * 3 / 5; }
  // The time that ranks have to report their activities. Usually they answer at once; a busy machine may need longer.
  std::chrono::nanoseconds answer() const {
    return std::clamp<std::chrono::nanoseconds>(timeout / 5, std::chrono::milliseconds(300), std::chrono::seconds(5));
  }
};

// Sees when its own thread did not run for a while (the process was stopped, or the machine slept), so that the others
// are not blamed for a silence in which that thread did not listen.
class StallDetector {
 public:
  explicit StallDetector(std::chrono::nanoseconds beat) : beat_(beat), last_(Clock::now()) {}

  // Returns the time to add to every deadline that was set before. Must be called at least once per beat.
  std::chrono::nanoseconds Tick() {
    const Clock::time_point now = Clock::now();
    const auto passed = now - std::exchange(last_, now);
    return passed > 3 * beat_ ? passed - beat_ : std::chrono::nanoseconds(0);
  }

 private:
  const std::chrono::nanoseconds beat_;
  Clock::time_point last_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_CONTROL_TIMING_H_
