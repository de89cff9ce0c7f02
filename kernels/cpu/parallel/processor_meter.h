#ifndef BOWLINE_KERNELS_CPU_PARALLEL_PROCESSOR_METER_H_
#define BOWLINE_KERNELS_CPU_PARALLEL_PROCESSOR_METER_H_

#include <algorithm>
#include <cstdint>

namespace bowline::kernels {

// Measures how long a thread waited for a processor: the time that it was not asleep minus its processor time. Reading
// processor time is a system call, so callers do it every few milliseconds. Times are nanoseconds that callers pass in.
class ProcessorMeter {
 public:
  static constexpr int64_t kPeriod = 4'000'000;

  ProcessorMeter(int64_t now, int64_t given) : since_(now), given_(given) {}

  // Returns whether at least kPeriod passed from the last report to `now`, so that a new report is due.
  bool Due(int64_t now) const { return now - since_ >= kPeriod; }

  // Records that the thread slept because it had nothing to do.
  void Slept(int64_t nanoseconds) { slept_ += nanoseconds; }

  // Returns the ns that the thread waited for a processor since the last report. `given` is its total processor time.
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
