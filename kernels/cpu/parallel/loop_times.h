#ifndef BOWLINE_KERNELS_CPU_PARALLEL_LOOP_TIMES_H_
#define BOWLINE_KERNELS_CPU_PARALLEL_LOOP_TIMES_H_

#include <atomic>
#include <cstdint>

namespace bowline::kernels {

// Learns from the runs of a loop how long it takes on a whole team and on its caller alone, and picks the faster way.
//
// The bytes that one member of a team wrote come to the others from its processor's cache. Where this takes half a
// microsecond, as on processors that lie far apart, a team takes longer for a short loop than its caller alone does. So
// of short loops some runs are samples of the way that is not taken otherwise. Long loops, for which a sample would be
// dear, run on teams.
//
// Threads may use one object at the same time. A thread may lose the times that another one measured.
class LoopTimes {
 public:
  static constexpr double kShort = 200'000;  // ns that the caller takes alone
  static constexpr uint32_t kSamples = 2;    // samples of each kRuns runs
  static constexpr uint32_t kRuns = 1000;
  static constexpr double kClearly = 1.1;  // the caller works alone if a team takes this many times as long

  // Returns whether the caller should run the loop over `extent` indices alone, instead of a team of `members` threads.
  bool RunsAlone(int64_t extent, int members);

  void RanAlone(int64_t extent, int64_t nanoseconds) { Learn(of_alone_, extent, nanoseconds); }
  void RanOnTeam(int64_t extent, int64_t nanoseconds) { Learn(of_team_, extent, nanoseconds); }

 private:
  static void Learn(std::atomic<double>& of_index, int64_t extent, int64_t nanoseconds);

  std::atomic<double> of_alone_{0}, of_team_{0};  // ns for an index; 0: not known
  std::atomic<uint32_t> runs_{0};                 // short runs, modulo kRuns
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PARALLEL_LOOP_TIMES_H_
