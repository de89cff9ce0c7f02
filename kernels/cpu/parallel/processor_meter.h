#ifndef BOWLINE_KERNELS_CPU_PARALLEL_PROCESSOR_METER_H_
#define BOWLINE_KERNELS_CPU_PARALLEL_PROCESSOR_METER_H_

#include <algorithm>
#include <cstdint>

namespace bowline::kernels {

// The time that a thread lacks: the time that it was awake less the processor time that it was given. Reading the
// latter is a system call, so it is read every few milliseconds. Times are nanoseconds. Nothing here reads a clock.
class ProcessorMeter {
 public:
  static constexpr int64_t kPeriod = 4'000'000;

  ProcessorMeter(int64_t now, int64_t given) : since_(now), given_(given) {}

  // Whether the time since the last report, `now` being this one's, is long enough.
  bool Due(int64_t now) const { return now - since_ >= kPeriod; }

  // The thread slept because it had nothing to do.
  void Slept(int64_t nanoseconds) { slept_ += nanoseconds; }

  // The thread has had `given` ns of a processor since it began; how much it lacked since the last report.
  int64_t Report(int64_t now, int64_t given) {
    const int64_t taken = std::max<int64_t>(0, now - since_ - slept_ - (given - given_));
    since_ = now;
    given_ = given;
    slept_ = 0;
    return taken;
  }

 private:
  int64_t since_, given_;
  int64_t slept_ = 0;
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PARALLEL_PROCESSOR_METER_H_
