#include "kernels/cpu/parallel.h"

#include <cstdlib>

#if defined(__linux__)
#include <unistd.h>
#endif

// The entry points of libgomp that GCC emits calls to; their ABI is stable. We call them directly because
// `clang -fopenmp` would link LLVM's libomp: a second pool beside the libgomp that oneDNN brings, with twice the
// threads and neither knowing about the other.
extern "C" {
void GOMP_parallel(void (*body)(void*), void* data, unsigned num_threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
void omp_set_num_threads(int);
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BOWLINE_TSAN 1
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif
#endif

namespace bowline::kernels {
namespace {

// libgomp is not instrumented: without these the sanitizer does not see that a region starts and ends with a barrier.
void Publish([[maybe_unused]] void* region) {
#if defined(BOWLINE_TSAN)
  __tsan_release(region);
#endif
}
void Observe([[maybe_unused]] void* region) {
#if defined(BOWLINE_TSAN)
  __tsan_acquire(region);
#endif
}

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
  Observe(data);
  const Region& region = *static_cast<const Region*>(data);
  // The team is smaller than asked for under OMP_THREAD_LIMIT, OMP_DYNAMIC or in a nested region.
  const int team = omp_get_num_threads();
  for (int chunk = omp_get_thread_num(); chunk < region.chunks; chunk += team) region.RunChunk(chunk);
  Publish(data);
}

}  // namespace

void ParallelForChunks(int threads, int64_t extent, absl::FunctionRef<void(int, int64_t, int64_t)> body) {
  if (extent <= 0) return;
  const int chunks = static_cast<int>(extent < threads ? extent : threads);
  if (chunks <= 1) return body(0, 0, extent);
  Region region{body, extent, chunks};
  Publish(&region);
  // Always the whole team, even where some members find no chunk: libgomp ends the threads that a smaller team leaves
  // over and creates them again, allocating, for the next larger one.
  GOMP_parallel(&RunMember, &region, static_cast<unsigned>(threads), 0);
  Observe(&region);
}

void ParallelFor(int threads, int64_t extent, absl::FunctionRef<void(int64_t, int64_t)> body) {
  ParallelForChunks(threads, extent, [body](int, int64_t begin, int64_t end) { body(begin, end); });
}

void ParallelFor(int threads, int64_t extent, double nanoseconds_per_index,
                 absl::FunctionRef<void(int64_t, int64_t)> body) {
  const double chunks = static_cast<double>(extent) * nanoseconds_per_index / kChunkNanoseconds;
  // Written so that a NaN runs on all threads.
  if (chunks < 2) return extent > 0 ? body(0, extent) : void();
  if (chunks < threads) threads = static_cast<int>(chunks);
  ParallelFor(threads, extent, body);
}

void RestartWithShortWaits([[maybe_unused]] char** argv) {
#if defined(__linux__)
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  if (setenv("GOMP_SPINCOUNT", "10000", 1) == 0) execv("/proc/self/exe", argv);
#endif
}

void SetThreads(int threads) { omp_set_num_threads(threads < 1 ? 1 : threads); }

}  // namespace bowline::kernels
