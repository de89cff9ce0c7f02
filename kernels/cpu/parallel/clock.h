#ifndef BOWLINE_KERNELS_CPU_PARALLEL_CLOCK_H_
#define BOWLINE_KERNELS_CPU_PARALLEL_CLOCK_H_

#include <cstdint>
#include <ctime>

namespace bowline::kernels {

inline int64_t Nanoseconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Nanoseconds of a clock that never goes back.
inline int64_t Now() { return Nanoseconds(CLOCK_MONOTONIC); }

// Like Now(), but in steps of a few milliseconds, at a fifth of the cost.
inline int64_t CoarseNow() { return Nanoseconds(CLOCK_MONOTONIC_COARSE); }

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PARALLEL_CLOCK_H_
