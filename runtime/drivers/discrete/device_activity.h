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

  // For a host that issued commands and then waits for another rank instead of its device, which is not seen here.
  // A late command goes on after so long in any case.
  static constexpr std::chrono::seconds kPatience{2};

  // Guards the queues of all devices, and is held for all calls below but AwaitQuiet.
  static std::mutex& mutex();

  static void Begin();
  // When this was the last, the one with the smallest turn of all that are late goes on.
  static void End();

  static void Add(uint64_t turn, Late* late);
  // Nothing happens where it waits no more.
  static void Remove(Late* late);

  // For the thread of a call, which counts: returns when nothing else goes on, and its turn is the smallest.
  static void AwaitQuiet(uint64_t turn);
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_DISCRETE_DEVICE_ACTIVITY_H_
