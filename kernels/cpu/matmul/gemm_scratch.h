#ifndef BOWLINE_KERNELS_CPU_MATMUL_GEMM_SCRATCH_H_
#define BOWLINE_KERNELS_CPU_MATMUL_GEMM_SCRATCH_H_

// The scratch in which a product keeps its packed operands and its sums. All of it is a template over the sizes of an
// instruction set's tiles, so that each instruction set has functions of its own, and a compiler that plans for another
// machine computes the sizes without that machine's instructions.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/matmul/gemm_tiles.h"

namespace bowline::kernels {

// `Tiles` has
//   kTileM                     rows of a tile
//   kPanelColumns              columns of a panel of packed B
//   kBlockM, kStripN           rows of a block of A, which stays in the second-level cache, with the next one if there
//                              is room, beside kStripN columns of B
//   kScratchWords              words of scratch that a tile needs itself
//   kPadWords                  when the words of k are packed, zeros fill them up to a multiple of this number
//   kSteps                     steps of k in a word
template <typename Tiles>
struct GemmScratch {
  static constexpr int64_t kBlockWords = 768;             // words of k: few passes over C; a panel of A fits into L1
  static constexpr int64_t kBlockN = 8 * Tiles::kStripN;  // packed B stays in the last-level cache
  static constexpr int64_t kPackedN = 4 * kBlockN;
  static constexpr int64_t kSpanM =
      4 * Tiles::kBlockM;  // rows of a block that is finished over all of k before the next

  static constexpr int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
  static constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
  }
  static constexpr int64_t PaddedWords(int64_t words) { return RoundUp(words, Tiles::kPadWords); }

  // How many columns are multiplied with a block of A before the next is packed: all of them if B is there already.
  static constexpr int64_t BlockColumns(int64_t n, bool b_packed) {
    return Smaller(RoundUp(n, Tiles::kPanelColumns), b_packed ? kPackedN : kBlockN);
  }
  static constexpr int64_t PackedAWords(int64_t m, int64_t words) {
    return RoundUp(Smaller(RoundUp(m, Tiles::kTileM), Tiles::kBlockM) * PaddedWords(Smaller(words, kBlockWords)), 16);
  }
  static constexpr int64_t PackedBWords(int64_t columns, int64_t words) {
    return RoundUp(columns * PaddedWords(Smaller(words, kBlockWords)), 16);
  }
  static constexpr int64_t SumWords(int64_t m, int64_t words, int64_t columns, GemmSums sums) {
    if (sums == GemmSums::kInC) return RoundUp(Smaller(m, Tiles::kTileM) * Tiles::kPanelColumns, 16);
    if (words > kBlockWords) return RoundUp(Smaller(m, kSpanM) * columns, 16);
    return RoundUp(sums == GemmSums::kInScratch ? Smaller(m, Tiles::kTileM) * columns
                                                : Smaller(m, Tiles::kBlockM) * Smaller(columns, Tiles::kStripN),
                   16);
  }

  // See GemmTiles.
  static size_t Words(int64_t m, int64_t n, int64_t k, GemmSums sums, bool b_packed) {
    const int64_t columns = BlockColumns(n, b_packed), words = (k + Tiles::kSteps - 1) / Tiles::kSteps;
    return static_cast<size_t>(Tiles::kScratchWords + PackedAWords(m, words) +
                               (b_packed ? 0 : PackedBWords(columns, words)) + SumWords(m, words, columns, sums) +
                               (sums == GemmSums::kFlipped ? Tiles::kBlockM * Tiles::kStripN : 0));
  }
};

// The sizes of the tiles of AMX, for code that is compiled without its instructions.
struct AmxSizes {
  static constexpr int64_t kTileM = 32, kPanelColumns = 48, kBlockM = 16 * kTileM, kStripN = 4 * kPanelColumns,
                           kScratchWords = kTileM * kStripN, kPadWords = 16, kSteps = 2;
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_MATMUL_GEMM_SCRATCH_H_
