#include "kernels/cpu/parallel/time_alone.h"

#include <algorithm>

namespace bowline::kernels {

bool TimeAlone::TakesSample(int64_t extent) {
  const double known = of_index_.load(std::memory_order_relaxed) * static_cast<double>(extent);
  if (known == 0 || known > kShort) return false;
  const uint32_t run = runs_.load(std::memory_order_relaxed);
  runs_.store(run + 1 == kRuns ? 0 : run + 1, std::memory_order_relaxed);
  return run < kSamples;
}

void TimeAlone::Sample(int64_t extent, int64_t nanoseconds) {
  const double known = of_index_.load(std::memory_order_relaxed);
  const double sample = static_cast<double>(nanoseconds) / static_cast<double>(extent);
  // Slowly up only: a run may be interrupted, but is never too short.
  const double now = sample < known ? sample : known + std::min(sample - known, known) / 16;
  of_index_.store(now, std::memory_order_relaxed);
}

int64_t TimeAlone::Estimate(int64_t extent, int64_t worked) {
  const double known = of_index_.load(std::memory_order_relaxed);
  if (known > 0) return std::min(worked, static_cast<int64_t>(known * static_cast<double>(extent)));
  of_index_.store(static_cast<double>(worked) / static_cast<double>(extent), std::memory_order_relaxed);
  return worked;
}

}  // namespace bowline::kernels
