#ifndef BOWLINE_RUNTIME_DRIVERS_DISCRETE_DEVICE_ACTIVITY_H_
#define BOWLINE_RUNTIME_DRIVERS_DISCRETE_DEVICE_ACTIVITY_H_

#include <chrono>
#include <cstdint>
#include <mutex>

namespace bowline {

// Counts the activities that proceed by themselves on all discrete devices of this process, since ranks may be threads
// of one process. A command that must be as late as possible begins when the count is 0.
class DeviceActivity {
 public:
  // A command or call that waits until the count is 0.
  class Late {
   public:
    virtual ~Late() = default;
    // Called once, with the mutex held, at the end of the wait. The function counts its activity with Begin.
    virtual void GoOn() = 0;
  };

  // A late command begins after this time in any case. A host that issued commands may wait for another rank instead of
  // its device, and this class cannot see that wait.
  static constexpr std::chrono::seconds kPatience{2};

  // Guards the queues of all devices. The caller holds it for all functions below except AwaitQuiet.
  static std::mutex& mutex();

  static void Begin();
  // When the last activity ends, the late command with the smallest turn begins.
  static void End();

  static void Add(uint64_t turn, Late* late);
  // Does nothing if it no longer waits.
  static void Remove(Late* late);

  // Called on the thread of a host call, an activity itself. Returns when no other runs and its turn is the smallest.
  static void AwaitQuiet(uint64_t turn);
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_DISCRETE_DEVICE_ACTIVITY_H_
