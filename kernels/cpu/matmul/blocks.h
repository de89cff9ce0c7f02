#ifndef BOWLINE_KERNELS_CPU_MATMUL_BLOCKS_H_
#define BOWLINE_KERNELS_CPU_MATMUL_BLOCKS_H_

// The division of k into blocks, for the product and for operands that were packed before it. Only for *_isa.cc files.

#include <cstdint>

namespace bowline::kernels::BOWLINE_ISA {

constexpr int64_t kBlockWords = 768;  // the same as in GemmScratch

constexpr int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t RoundUp(int64_t value, int64_t multiple) { return CeilDiv(value, multiple) * multiple; }

// Words that AMX multiplies at once: blocks, but the last one, and panels of pairs are whole multiples.
constexpr int64_t kTileWords = 16;

// `words` in blocks of at most `most`, equal ones rather than full ones and a remainder.
constexpr int64_t EqualBlocks(int64_t words, int64_t most) {
  return RoundUp(CeilDiv(words, CeilDiv(words, most)), kTileWords);
}

// A function of the words of k alone: see the promise in gemm.h.
constexpr int64_t BlockWords(int64_t words) { return EqualBlocks(words, kBlockWords); }

// Words of each row of a panel in a packed matrix, for a block of `words`.
template <typename Operand>
constexpr int64_t PanelWords(int64_t words) {
  return Operand::kStepsPerWord == 2 ? RoundUp(words, kTileWords) : words;
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_BLOCKS_H_
