#ifndef BOWLINE_RUNTIME_HAL_RECORDING_H_
#define BOWLINE_RUNTIME_HAL_RECORDING_H_

namespace bowline::hal {

// Commands of one device that the host can issue again and again, all of them at the cost of one command: see
// Device::Record and Stream::Replay.
class Recording {
 public:
  virtual ~Recording() = default;

  // Contract
  //   Launches, copies and communicator operations keep the addresses, geometries and constants of their recording;
  //   values that vary between replays must be in memory. Recorded launchables, communicators and allocations outlive
  //   the recording. It may be destroyed once the streams that replayed it were synchronised.
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_RECORDING_H_
