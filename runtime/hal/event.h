#ifndef BOWLINE_RUNTIME_HAL_EVENT_H_
#define BOWLINE_RUNTIME_HAL_EVENT_H_

#include <cstdint>

#include "runtime/base/status.h"

namespace bowline::hal {

enum class EventMode {
  kOrder,  // streams and the host can wait for it
  kTimed,  // Event::Time is possible, too
};

// A point in a stream that other streams can wait for: see Stream::Record and Stream::Wait.
class Event {
 public:
  virtual ~Event() = default;

  // True once Record was called on some stream.
  virtual bool recorded() const = 0;

  // Returns when the stream has come to the point that was recorded last, or at once if none was. Commands after that
  // point may still be under way. The error is one of the device: for errors of commands see Stream::HasFailed.
  virtual absl::Status Await() const = 0;

  // The time at which the stream came to the point that was recorded last, by the device's clock, in nanoseconds of
  // this host's steady clock, to within the time that it takes to ask the device. kFailedPrecondition unless the event
  // is timed and the point was reached.
  virtual absl::StatusOr<int64_t> Time() const = 0;

  // Contract
  //   An event that was recorded while its stream's commands were recorded (Device::Record) has a point for those
  //   alone: it is recorded again before it is used elsewhere. An event may be recorded again; a later Wait then waits
  //   for the newer point, an earlier one for the older. Times of events of one device can be subtracted from each
  //   other to the microsecond; those of different devices agree as well as their clocks do. Record, Wait, Await,
  //   recorded and Time of one event are calls of one thread at a time. A timed event outlives its points: the caller
  //   synchronises the streams that recorded it first.
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_EVENT_H_
