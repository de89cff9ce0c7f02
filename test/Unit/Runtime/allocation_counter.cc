#include "test/Unit/Runtime/allocation_counter.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BOWLINE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BOWLINE_SANITIZED 1
#endif
#endif

namespace {
std::atomic<uint64_t> allocations{0};
}

#ifndef BOWLINE_SANITIZED

// glibc's own entry points; ours take the public names for the whole process, shared libraries too.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  ++allocations;
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  ++allocations;
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}
}  // extern "C"

#endif

namespace bowline::testing {

uint64_t HeapAllocations() { return allocations; }

bool CanCountHeapAllocations() {
#ifdef BOWLINE_SANITIZED
  return false;
#else
  return true;
#endif
}

}  // namespace bowline::testing
