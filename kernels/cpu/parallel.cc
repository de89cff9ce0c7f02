#include "kernels/cpu/parallel.h"

// The entry points of libgomp that GCC emits calls to; their ABI is stable. We call them directly because
// `clang -fopenmp` would link LLVM's libomp: a second pool beside the libgomp that oneDNN brings, with twice the
// threads and neither knowing about the other.
extern "C" {
void GOMP_parallel(void (*body)(void*), void* data, unsigned num_threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
void omp_set_num_threads(int);
}

namespace bowline::kernels {
namespace {

struct Region {
  absl::FunctionRef<void(int, int64_t, int64_t)> body;
  int64_t extent;
  int chunks;

  void RunChunk(int chunk) const {
    const int64_t share = extent / chunks, extra = extent % chunks;
    const int64_t begin = chunk * share + (chunk < extra ? chunk : extra);
    body(chunk, begin, begin + share + (chunk < extra ? 1 : 0));
  }
};

void RunMember(void* data) {
  const Region& region = *static_cast<const Region*>(data);
  // The team is smaller than asked for under OMP_THREAD_LIMIT, OMP_DYNAMIC or in a nested region.
  const int team = omp_get_num_threads();
  for (int chunk = omp_get_thread_num(); chunk < region.chunks; chunk += team) region.RunChunk(chunk);
}

}  // namespace

void ParallelForChunks(int threads, int64_t extent, absl::FunctionRef<void(int, int64_t, int64_t)> body) {
  if (extent <= 0) return;
  if (threads > extent) threads = static_cast<int>(extent);
  if (threads <= 1) return body(0, 0, extent);
  Region region{body, extent, threads};
  GOMP_parallel(&RunMember, &region, static_cast<unsigned>(threads), 0);
}

void ParallelFor(int threads, int64_t extent, absl::FunctionRef<void(int64_t, int64_t)> body) {
  ParallelForChunks(threads, extent, [body](int, int64_t begin, int64_t end) { body(begin, end); });
}

void SetThreads(int threads) { omp_set_num_threads(threads < 1 ? 1 : threads); }

}  // namespace bowline::kernels
