#ifndef BOWLINE_KERNELS_CPU_PARALLEL_IDLE_WATCH_H_
#define BOWLINE_KERNELS_CPU_PARALLEL_IDLE_WATCH_H_

#include <atomic>
#include <cstdint>

namespace bowline::kernels {

// Detects whether a processor is idle that the process could use.
//
// One thread of the process has priority SCHED_IDLE, so the operating system runs it only on idle processors. It wakes
// every five milliseconds and checks whether it got a processor in time and kept it for a moment. Unlike a helper that
// tries to run, it takes no time from other programs. It checks only while a team asks.
class IdleWatch {
 public:
  // All checks from `since` to `until`, in ns of Now(), found an idle processor; since > until means that none did.
  struct Idle {
    int64_t since, until;
  };

  static constexpr int64_t kBetweenLooks = 5'000'000;

  // The single watch of the process. It is never destroyed.
  static IdleWatch& OfProcess();

  // The idle time detected so far. The thread keeps checking for 100 ms after each call. `now` is CoarseNow().
  Idle Ask(int64_t now);

 private:
  static constexpr int64_t kWanted = 100'000'000;
  static constexpr int64_t kInTime = 1'000'000;  // from when it should wake to when it runs
  static constexpr int64_t kMoment = 200'000;
  static constexpr int64_t kMostBetweenLooks = 2 * (kBetweenLooks + kInTime + kMoment);

  IdleWatch();
  [[noreturn]] void Watch();
  static bool SeesIdleProcessor();

  std::atomic<int64_t> since_{INT64_MAX}, until_{0};
  std::atomic<int64_t> wanted_until_{0};
  std::atomic<uint32_t> sleeps_{0};
  bool runs_ = true;
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PARALLEL_IDLE_WATCH_H_
