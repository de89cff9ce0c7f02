#ifndef BOWLINE_KERNELS_CPU_MATMUL_BLOCKS_H_
#define BOWLINE_KERNELS_CPU_MATMUL_BLOCKS_H_

// Divides k into blocks, equally for products and for operands packed earlier. Only for *_isa.cc files.

#include <cstdint>

namespace bowline::kernels::BOWLINE_ISA {

constexpr int64_t kBlockWords = 768;  // most words of k in a block; equal to GemmScratch::kBlockWords

constexpr int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t RoundUp(int64_t value, int64_t multiple) { return CeilDiv(value, multiple) * multiple; }

// Words of k that AMX multiplies at once. All blocks but the last, and panels of bf16 pairs, are multiples of it.
constexpr int64_t kTileWords = 16;

// The size of a block when `words` are divided into equal blocks of at most `most` words, multiples of kTileWords.
constexpr int64_t EqualBlocks(int64_t words, int64_t most) {
  return RoundUp(CeilDiv(words, CeilDiv(words, most)), kTileWords);
}

// Words of k in a block of a product. Depends on the words of k only, as the promise in gemm.h about bits requires.
constexpr int64_t BlockWords(int64_t words) { return EqualBlocks(words, kBlockWords); }

// Rows of a panel in a packed matrix for a block of `words` words: bf16 pairs are filled up to whole kTileWords.
template <typename Operand>
constexpr int64_t PanelWords(int64_t words) {
  return Operand::kStepsPerWord == 2 ? RoundUp(words, kTileWords) : words;
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_BLOCKS_H_
