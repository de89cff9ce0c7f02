#ifndef BOWLINE_RUNTIME_HAL_EVENT_H_
#define BOWLINE_RUNTIME_HAL_EVENT_H_

namespace bowline::hal {

// A point in a stream that other streams can wait for: see Stream::Record and Stream::Wait.
class Event {
 public:
  virtual ~Event() = default;

  // True once Record was called on some stream.
  virtual bool recorded() const = 0;

  // Contract
  //   An event may be recorded again; a later Wait then waits for the newer point, an earlier one for the
  //   older. Record, Wait and recorded of one event are calls of one thread at a time.
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_EVENT_H_
