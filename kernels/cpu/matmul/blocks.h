#ifndef BOWLINE_KERNELS_CPU_MATMUL_BLOCKS_H_
#define BOWLINE_KERNELS_CPU_MATMUL_BLOCKS_H_

// How k is cut into blocks, for the product and for operands that were packed before it. Only for *_isa.cc files.

#include <cstdint>

namespace bowline::kernels::BOWLINE_ISA {

constexpr int64_t kBlockWords = 768;  // of k: few passes over C, and a panel of A still stays in L1

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t RoundUp(int64_t value, int64_t multiple) { return CeilDiv(value, multiple) * multiple; }

// Equal blocks rather than full ones and a remainder. A function of the words of k alone: see the promise in gemm.h.
constexpr int64_t BlockWords(int64_t words) { return CeilDiv(words, CeilDiv(words, kBlockWords)); }

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_BLOCKS_H_
