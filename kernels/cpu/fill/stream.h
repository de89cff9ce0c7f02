#ifndef BOWLINE_KERNELS_CPU_FILL_STREAM_H_
#define BOWLINE_KERNELS_CPU_FILL_STREAM_H_

// Stores that bypass the caches, for outputs that are larger than they: an ordinary store first reads its line from
// memory.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa/isa.h"

namespace bowline::kernels {

// The least size in bytes of outputs that are streamed: about the share of one process in the last-level cache.
inline constexpr size_t kStreamBytes = size_t{16} << 20;

inline constexpr size_t kStreamLine = 64;

// Fills `bytes` bytes at `out`, both multiples of kStreamLine, with copies of `word`. The stores are fenced, so other
// threads may read them as after ordinary stores.
struct StreamTable {
  void (*fill)(void* out, size_t bytes, uint32_t word);
};
BOWLINE_DECLARE_ISA_VARIANTS(StreamTable, kStream)

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_FILL_STREAM_H_
