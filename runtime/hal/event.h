#ifndef BOWLINE_RUNTIME_HAL_EVENT_H_
#define BOWLINE_RUNTIME_HAL_EVENT_H_

#include <cstdint>

#include "runtime/base/status.h"

namespace bowline::hal {

enum class EventMode {
  kOrder,  // streams and the host can wait for the event
  kTimed,  // in addition, Event::Time is available
};

// A point in a stream that other streams can wait for: see Stream::Record and Stream::Wait.
class Event {
 public:
  virtual ~Event() = default;

  // Returns whether a stream has recorded the event (Stream::Record).
  virtual bool recorded() const = 0;

  // Blocks until the stream has reached the point that was recorded last; returns at once if there is none. Later
  // commands may still run. An error is one of the device: Stream::HasFailed tells whether a command failed.
  virtual absl::Status Await() const = 0;

  // The time at which the stream reached the point that was recorded last: the device's time, in nanoseconds of this
  // host's steady clock. Its error is at most the time that it takes to ask the device. Returns kFailedPrecondition
  // unless the event is of mode kTimed and the point was reached.
  virtual absl::StatusOr<int64_t> Time() const = 0;

  // Contract
  //   An event that was recorded within Device::Record has a point for the recorded commands only: record it again
  //   before using it elsewhere. An event may be recorded again: later calls of Wait then wait for the newer point,
  //   earlier ones for the older. Times of events of one device can be subtracted from each other to the microsecond;
  //   times of different devices agree as well as the devices' clocks do. Only one thread at a time may call Record,
  //   Wait, Await, recorded and Time for an event. A timed event outlives its points: the caller synchronises the
  //   streams that recorded it before it destroys the event.
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_EVENT_H_
