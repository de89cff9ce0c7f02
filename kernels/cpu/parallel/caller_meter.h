#ifndef BOWLINE_KERNELS_CPU_PARALLEL_CALLER_METER_H_
#define BOWLINE_KERNELS_CPU_PARALLEL_CALLER_METER_H_

#include <sys/resource.h>

#include <cstdint>

#include "kernels/cpu/parallel/clock.h"
#include "kernels/cpu/parallel/processor_meter.h"

namespace bowline::kernels {

// The processor meter (processor_meter.h) of a team's caller, a thread that does other work between regions. If the
// caller slept outside of regions in a period, to wait for a message or a file, the meter cannot distinguish that sleep
// from waiting for a processor, so it reports 0 for the period. Only the caller may use it.
class CallerMeter {
 public:
  bool Due(int64_t now) const { return meter_.Due(now); }

  void Slept(int64_t nanoseconds) {
    meter_.Slept(nanoseconds);
    ++sleeps_;
  }

  int64_t Report(int64_t now) {
    rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    const int64_t taken = meter_.Report(now, Nanoseconds(CLOCK_THREAD_CPUTIME_ID));
    const bool slept_elsewhere = usage.ru_nvcsw - sleeps_before_ > sleeps_;
    sleeps_before_ = usage.ru_nvcsw;
    sleeps_ = 0;
    return slept_elsewhere ? 0 : taken;
  }

 private:
  ProcessorMeter meter_{0, 0};
  long sleeps_ = 0;                 // for helpers, since the last report
  long sleeps_before_ = INT32_MIN;  // of every kind, up to the last report; at first, nothing is known
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PARALLEL_CALLER_METER_H_
