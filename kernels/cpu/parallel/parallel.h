#ifndef BOWLINE_KERNELS_CPU_PARALLEL_PARALLEL_H_
#define BOWLINE_KERNELS_CPU_PARALLEL_PARALLEL_H_

// Parallel loops, by which hand-written and generated kernels use several threads.
//
// Each thread that runs loops has its own team (team.h): the thread itself and threads - 1 helpers. Its first loop
// starts the helpers, a loop for more threads starts a larger team, and helpers end with the thread. So ranks that are
// threads of one process share no helpers. Helpers poll for work for 50 microseconds and then sleep.
//
// The caller takes part and depends on no helper: it computes all chunks not yet begun. If other programs occupy some
// processors, loops use as many threads fewer; within 100 ms of a processor being idle they use all threads again
// (team_ledger.h). A short loop runs on the caller alone if a team would take longer, because handing over chunks takes
// time (loop_times.h). Results do not depend on any of this: the division of a range depends on the loop and its extent
// only.
//
// A loop inside the body of another one runs on the thread that comes to it. A body must not throw. Once a thread has
// its team, nothing is allocated and no lock is taken. In a process that was forked from one with a team, loops run on
// the caller.

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "kernels/cpu/parallel/loop_times.h"

namespace bowline::kernels {

// A loop whose body may run on several threads at once. A kernel that runs often has its loop as a member, which learns
// how long an index takes. Several threads may run one loop at the same time.
class ParallelLoop {
 public:
  using Body = absl::FunctionRef<void(int64_t begin, int64_t end)>;
  using MemberBody = absl::FunctionRef<void(int member, int64_t begin, int64_t end)>;

  // A loop that runs on `threads` threads; if `threads` <= 1, on the caller and in one chunk.
  explicit ParallelLoop(int threads) : threads_(threads) {}

  // Divides [0, extent) into min(kChunksPerThread * threads, extent) contiguous chunks whose sizes differ by at most
  // one and calls `body` once for each, on any thread of the team and in any order; returns when all calls have. If
  // `extent` <= 0, it makes no call.
  void Run(int64_t extent, Body body) const;

  // With this many chunks, a thread that began late, or was interrupted, does less than the others.
  static constexpr int kChunksPerThread = 4;

  // As above, but in fewer chunks if a chunk would take less than kChunkNanoseconds by the caller's estimate of the
  // time per index. Handing a chunk to another thread and waiting for it costs about a microsecond, so the caller runs
  // tiny work alone, in one chunk.
  void Run(int64_t extent, double nanoseconds_per_index, Body body) const;
  static constexpr double kChunkNanoseconds = 5000;

  // Divides [0, extent) as the first Run does; `member` in [0, min(threads, extent)) is unique among concurrent calls
  // of `body` and so selects private scratch.
  void RunMembers(int64_t extent, MemberBody body) const;

 private:
  void RunChunks(int64_t extent, int chunks, MemberBody body) const;

  const int threads_;
  mutable LoopTimes loop_times_;
};

// From now on every loop of this process runs on all of its threads, even if other programs need the processors or a
// short loop would be faster on the caller alone. Benchmarks use this mode as a baseline.
void KeepTeamsWhole();

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PARALLEL_PARALLEL_H_
