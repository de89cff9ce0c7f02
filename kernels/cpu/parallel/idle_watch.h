#ifndef BOWLINE_KERNELS_CPU_PARALLEL_IDLE_WATCH_H_
#define BOWLINE_KERNELS_CPU_PARALLEL_IDLE_WATCH_H_

#include <atomic>
#include <cstdint>

namespace bowline::kernels {

// Sees whether the process could have another processor.
//
// One thread of the process, which the operating system runs on processors without other work (SCHED_IDLE), wakes
// every five milliseconds and looks whether it was run in time and undisturbed for a moment. It takes nothing from
// anybody, which a helper that tried whether it gets a processor would do. It looks only while a team asks.
class IdleWatch {
 public:
  // At all looks from `since` to `until`, in ns of Now(), a processor was idle; if since > until, none was.
  struct Idle {
    int64_t since, until;
  };

  static constexpr int64_t kBetweenLooks = 5'000'000;

  // The watch of the process, which lives as long as that.
  static IdleWatch& OfProcess();

  // The idle time seen up to now. Looks go on for 100 ms after each call. `now` is CoarseNow().
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
