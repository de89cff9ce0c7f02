#ifndef BOWLINE_KERNELS_CUDA_GRID_H_
#define BOWLINE_KERNELS_CUDA_GRID_H_

// Arithmetic that programs need to size the grids of their launches.

#include <cstddef>
#include <cstdint>

namespace bowline::kernels::cuda {

inline constexpr int64_t kBlockThreads = 256;     // threads of a block where nothing else decides
inline constexpr int64_t kMaxBlocks = INT32_MAX;  // blocks along x
inline constexpr int64_t kMaxBlocksY = 65535;     // blocks along y, and along z
// The most blocks of a function whose threads go on to further elements: enough to fill any device many times.
inline constexpr int64_t kManyBlocks = int64_t{1} << 20;

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline uint32_t U32(int64_t value) { return static_cast<uint32_t>(value); }

}  // namespace bowline::kernels::cuda

#endif  // BOWLINE_KERNELS_CUDA_GRID_H_
