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

// As above; `chunk` in [0, threads) is unique among concurrent calls of `body` and so selects private scratch.
void ParallelForChunks(int threads, int64_t extent,
                       absl::FunctionRef<void(int chunk, int64_t begin, int64_t end)> body);

// How many threads OpenMP regions that the CALLING thread starts will use; oneDNN obeys it. ParallelFor does not need
// it.
void SetThreads(int threads);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PARALLEL_H_
