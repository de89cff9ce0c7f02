#ifndef BOWLINE_RUNTIME_DRIVERS_DISCRETE_DEVICE_ACTIVITY_H_
#define BOWLINE_RUNTIME_DRIVERS_DISCRETE_DEVICE_ACTIVITY_H_

#include <cstdint>

namespace bowline {

// What the streams of all discrete devices of this process do: ranks may be threads of one.
class DeviceActivity {
 public:
  // A stream begins a command.
  static void Count();

  // Returns when none has begun a command for a while: who calls this is what all others wait for, or they have nothing
  // to do. Of several who wait here the one with the smallest `turn` is what goes on next, with all that have the same.
  // What other processes do is not seen, and nobody waits for longer than a second.
  static void AwaitQuiet(uint64_t turn);
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_DISCRETE_DEVICE_ACTIVITY_H_
