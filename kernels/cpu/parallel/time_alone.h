#ifndef BOWLINE_KERNELS_CPU_PARALLEL_TIME_ALONE_H_
#define BOWLINE_KERNELS_CPU_PARALLEL_TIME_ALONE_H_

#include <atomic>
#include <cstdint>

namespace bowline::kernels {

// The time that a loop takes its caller without helpers, learned from the times of its runs.
//
// How long the members of a team work on a loop together is not that: what one of them has written comes to the others
// from its processor's cache, and where this takes half a microsecond, as on processors that lie far apart, a member
// works twice as long on a short loop as it would alone. So of short loops some runs are samples, which the caller runs
// alone. Long ones, for which a sample would be dear, are taken to last as long as all members worked.
//
// Threads may use one object at the same time. They may lose what another one learned.
class TimeAlone {
 public:
  static constexpr int64_t kShort = 200'000;  // ns
  static constexpr uint32_t kSamples = 2;     // samples of each kRuns runs
  static constexpr uint32_t kRuns = 1000;

  // Whether the caller should run the loop over `extent` indices alone and then say how long it took.
  bool TakesSample(int64_t extent);
  void Sample(int64_t extent, int64_t nanoseconds);

  // Estimates the caller's time alone, in ns, for `extent` indices on which members of a team worked for `worked` ns
  // together.
  int64_t Estimate(int64_t extent, int64_t worked);

 private:
  std::atomic<double> of_index_{0};  // ns for an index; 0: not known
  std::atomic<uint32_t> runs_{0};    // short runs, modulo kRuns
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PARALLEL_TIME_ALONE_H_
