#ifndef BOWLINE_KERNELS_CPU_PARALLEL_H_
#define BOWLINE_KERNELS_CPU_PARALLEL_H_

// The one thread pool of a process: that of GNU OpenMP, which oneDNN already uses. Generated code and hand-written
// kernels run on the same threads, so that a launch never competes with the idle workers of another pool.

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace bowline::kernels {

// Cuts [0, extent) into min(threads, extent) contiguous chunks whose sizes differ by at most one and calls
// `body(begin, end)` once for each. Which chunk covers which range depends on the arguments alone, never on timing.
// Allocates nothing once the pool has its threads. `threads` <= 1 runs inline on the caller.
void ParallelFor(int threads, int64_t extent, absl::FunctionRef<void(int64_t begin, int64_t end)> body);

// As above, in fewer chunks where one would take less than kChunkNanoseconds by the caller's estimate: handing a chunk
// to another thread and waiting for it costs about a microsecond, so tiny work runs inline on the caller. Which chunk
// covers which range depends on the arguments alone here too.
void ParallelFor(int threads, int64_t extent, double nanoseconds_per_index,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body);
inline constexpr double kChunkNanoseconds = 5000;

// As the first; `chunk` in [0, threads) is unique among concurrent calls of `body` and so selects private scratch.
void ParallelForChunks(int threads, int64_t extent,
                       absl::FunctionRef<void(int chunk, int64_t begin, int64_t end)> body);

// How many threads OpenMP regions that the CALLING thread starts will use; oneDNN obeys it. ParallelFor does not need
// it.
void SetThreads(int threads);

// For the first line of a program's main: threads that wait for others of their region, or for the next region, fall
// asleep after about 200 microseconds, a few times what waking up costs, unless the environment has OMP_WAIT_POLICY or
// GOMP_SPINCOUNT. The pool's default is to spin for milliseconds, through which a thread that the operating system
// interrupted, on a machine with more runnable threads than cores, takes everything to a multiple of its time. OpenMP
// reads the environment before main; so the program starts itself again with GOMP_SPINCOUNT. Returns if there is
// nothing to do or it cannot.
void RestartWithShortWaits(char** argv);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PARALLEL_H_
