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
  // How many columns are multiplied with a block of A before the next is packed: all of them if B is there already.
  static constexpr int64_t BlockColumns(int64_t n, bool b_packed) {
    return Smaller(RoundUp(n, Tiles::kPanelColumns), b_packed ? kPackedN : kBlockN);
  }
  static constexpr int64_t PackedAWords(int64_t m, int64_t words) {
    return RoundUp(Smaller(RoundUp(m, Tiles::kTileM), Tiles::kBlockM) * Smaller(words, kBlockWords), 16);
  }
  static constexpr int64_t PackedBWords(int64_t columns, int64_t words) {
    return RoundUp(columns * Smaller(words, kBlockWords), 16);
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
    return static_cast<size_t>(PackedAWords(m, words) + (b_packed ? 0 : PackedBWords(columns, words)) +
                               SumWords(m, words, columns, sums) +
                               (sums == GemmSums::kFlipped ? Tiles::kBlockM * Tiles::kStripN : 0));
  }
};

// Products in AMX's tiles (amx_product.h):
//   kSteps           steps of k in a word, in whose blocks B may be packed already
//   kPlanes          numbers of bf16 that an element is the sum of
//   kTileM, kStripN  rows of a tile and columns of a strip of B, which stays in the second-level cache while all rows
//   of
//                    a span pass
//   kSpanM, kBlockN  rows that are packed once for as many columns
//   kReadsA          whether tiles may read A in place
//   kPackCost, kReadCost: see GemmTiles; measured
struct AmxBf16Sizes {
  static constexpr int64_t kSteps = 2, kPlanes = 1, kTileM = 32, kStripN = 6 * 48, kSpanM = 2048, kBlockN = 5 * kStripN;
  static constexpr bool kReadsA = true;
  static constexpr double kPackCost = 140, kReadCost = 45;
};
struct AmxF32Sizes {
  static constexpr int64_t kSteps = 1, kPlanes = 3, kTileM = 32, kStripN = 4 * 48, kSpanM = 1024, kBlockN = 8 * kStripN;
  static constexpr bool kReadsA = false;
  static constexpr double kPackCost = 60, kReadCost = 60;
};

// The scratch of such products, for a type derived from sizes.
template <typename Sizes>
struct AmxScratch {
  static constexpr int64_t kBlockWords = 768, kPanelColumns = 48, kGroupSteps = 32;

  static constexpr int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
  static constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
  }
  static constexpr int64_t Words(int64_t k) { return (k + Sizes::kSteps - 1) / Sizes::kSteps; }
  static constexpr int64_t BlockColumns(int64_t n) { return Smaller(RoundUp(n, kPanelColumns), Sizes::kBlockN); }

  // Of `rows` rows of A, or columns of B, and a block of k: pairs of bf16.
  static constexpr int64_t PackedWords(int64_t rows, int64_t k) {
    const int64_t steps = RoundUp(Smaller(k, kBlockWords * Sizes::kSteps), kGroupSteps);
    return rows * (steps / 2 * Sizes::kPlanes);
  }
  // Rows of A are packed once for all strips of B; for a single one, tile by tile.
  static constexpr bool PacksTiles(int64_t n) { return n <= Sizes::kStripN; }
  static constexpr int64_t PackedAWords(int64_t m, int64_t n, int64_t k) {
    return PackedWords(Smaller(RoundUp(m, Sizes::kTileM), PacksTiles(n) ? Sizes::kTileM : Sizes::kSpanM), k);
  }
  static constexpr int64_t StripColumns(int64_t n) { return Smaller(RoundUp(n, kPanelColumns), Sizes::kStripN); }
  static constexpr int64_t PackedBWords(int64_t n, int64_t k) { return PackedWords(StripColumns(n), k); }
  // The sums of a tile.
  static constexpr int64_t SumWords(int64_t n) { return Sizes::kTileM * StripColumns(n); }
  // Sums over several blocks of k, where C cannot hold them.
  static constexpr int64_t SpanWords(int64_t m, int64_t n, int64_t k, GemmSums sums) {
    if (sums == GemmSums::kInC || Words(k) <= kBlockWords) return 0;
    return RoundUp(Smaller(m, Sizes::kSpanM) * BlockColumns(n), 16);
  }

  // Whether A is read in place: k is contiguous in whole registers, and rows are not so far apart that they share few
  // sets of the first-level cache.
  static bool ReadsA(int64_t k, int64_t stride_m, int64_t stride_k) {
    constexpr int64_t kFewSets = 512;
    return Sizes::kReadsA && stride_k == 1 && k % kGroupSteps == 0 && stride_m % kFewSets != 0;
  }

  // See GemmTiles. Packed matrices of f32 are split too.
  static size_t AllWords(int64_t m, int64_t n, int64_t k, GemmSums sums, bool b_packed) {
    const bool packs_b = !b_packed || Sizes::kPlanes > 1;
    return static_cast<size_t>(SumWords(n) + PackedAWords(m, n, k) + (packs_b ? PackedBWords(n, k) : 0) +
                               SpanWords(m, n, k, sums));
  }
};

template <typename Tiles>
constexpr GemmTiles VectorTilesOf() {
  // Moving an element costs about a seventh of a row of a tile, wherever it goes.
  constexpr double kCost = 0.15 * static_cast<double>(Tiles::kPanelColumns);
  return {Tiles::kTileM, Tiles::kBlockM, /*shares_b=*/true, kCost, kCost, nullptr, &GemmScratch<Tiles>::Words};
}

template <typename Sizes>
constexpr GemmTiles AmxTilesOf() {
  using Scratch = AmxScratch<Sizes>;
  return {Sizes::kTileM,    Sizes::kSpanM,    /*shares_b=*/false, Sizes::kPackCost,
          Sizes::kReadCost, &Scratch::ReadsA, &Scratch::AllWords};
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_MATMUL_GEMM_SCRATCH_H_
