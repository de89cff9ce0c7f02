#include "kernels/cpu/parallel/loop_times.h"

#include <algorithm>

namespace bowline::kernels {

bool LoopTimes::RunsAlone(int64_t extent, int members) {
  const double of_team = of_team_.load(std::memory_order_relaxed), of_alone = of_alone_.load(std::memory_order_relaxed);
  if (of_team == 0) return false;
  // Until a sample is taken, assume that the caller alone takes the time of all members together.
  const double alone = (of_alone == 0 ? of_team * members : of_alone) * static_cast<double>(extent);
  if (alone > kShort) return false;
  const uint32_t run = runs_.load(std::memory_order_relaxed);
  runs_.store(run + 1 == kRuns ? 0 : run + 1, std::memory_order_relaxed);
  const bool alone_is_faster = of_alone != 0 && of_alone * kClearly < of_team;
  return (run < kSamples) != alone_is_faster;
}

void LoopTimes::Learn(std::atomic<double>& of_index, int64_t extent, int64_t nanoseconds) {
  const double known = of_index.load(std::memory_order_relaxed);
  const double sample = static_cast<double>(nanoseconds) / static_cast<double>(extent);
  // Slowly up only: a run may be interrupted, but is never too short.
  const bool down = known == 0 || sample < known;
  of_index.store(down ? sample : known + std::min(sample - known, known) / 16, std::memory_order_relaxed);
}

}  // namespace bowline::kernels
