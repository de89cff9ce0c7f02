#ifndef BOWLINE_KERNELS_CPU_STREAM_H_
#define BOWLINE_KERNELS_CPU_STREAM_H_

// Stores that bypass the caches, for outputs that are larger than they: an ordinary store first reads its line from
// memory, which is a third to a half of the traffic of a kernel that mostly writes.

#include <cstddef>
#include <cstdint>

namespace bowline::kernels {

// Outputs from this size on are streamed: about what of the last level of cache is one process's.
inline constexpr size_t kStreamBytes = size_t{16} << 20;

using StreamVec = float __attribute__((ext_vector_type(4)));

inline bool CanStream(const void* address) { return reinterpret_cast<uintptr_t>(address) % sizeof(StreamVec) == 0; }

// `address` is aligned as CanStream asks.
inline void Stream(void* address, StreamVec value) {
  __builtin_nontemporal_store(value, static_cast<StreamVec*>(address));
}

// Before other threads may read what was streamed: the order of memory does not cover such stores.
inline void FinishStreaming() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_STREAM_H_
