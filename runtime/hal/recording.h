#ifndef BOWLINE_RUNTIME_HAL_RECORDING_H_
#define BOWLINE_RUNTIME_HAL_RECORDING_H_

namespace bowline::hal {

// Commands of one device in a form in which it runs all of them at the host's cost of issuing one: see
// Device::Record and Stream::Replay.
class Recording {
 public:
  virtual ~Recording() = default;

  // Contract
  //   Launches, copies and communicators' operations have the addresses, geometries and constants that they were
  //   recorded with; values that replays may vary are in memory. Launchables, communicators and allocations that were
  //   recorded outlive the recording. It may be destroyed when the streams that replayed it were synchronised.
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_RECORDING_H_
