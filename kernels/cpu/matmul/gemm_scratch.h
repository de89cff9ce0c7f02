#ifndef BOWLINE_KERNELS_CPU_MATMUL_GEMM_SCRATCH_H_
#define BOWLINE_KERNELS_CPU_MATMUL_GEMM_SCRATCH_H_

// The scratch in which a product keeps packed operands and sums. All sizes are templates over the sizes of an
// instruction set's tiles. So each instruction set has its own functions, and a compiler that plans for another machine
// computes the sizes without that machine's instructions.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/matmul/gemm_tiles.h"

namespace bowline::kernels {

// The scratch of a product in vector registers. `Tiles` has
//   kTileM                     rows of a tile
//   kPanelColumns              columns of a panel of packed B
//   kBlockM, kStripN           rows of a block of A, and columns of a strip of B. Block and strip stay in the
//                              second-level cache together, with the next block if there is room.
//   kSteps                     steps of k in a word
template <typename Tiles>
struct GemmScratch {
  static constexpr int64_t kBlockWords = 768;             // words of k: few passes over C; a panel of A fits into L1
  static constexpr int64_t kBlockN = 8 * Tiles::kStripN;  // packed B stays in the last-level cache
  static constexpr int64_t kPackedN = 4 * kBlockN;
  static constexpr int64_t kSpanM =
      4 * Tiles::kBlockM;  // rows that are finished over all of k before the next rows begin

  static constexpr int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
  static constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
  }
  // Columns that a block of A is multiplied with before the next is packed: more of them if B is packed already.
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

  // Implements GemmTiles::scratch_words.
  static size_t Words(int64_t m, int64_t n, int64_t k, GemmSums sums, bool b_packed) {
    const int64_t columns = BlockColumns(n, b_packed), words = (k + Tiles::kSteps - 1) / Tiles::kSteps;
    return static_cast<size_t>(PackedAWords(m, words) + (b_packed ? 0 : PackedBWords(columns, words)) +
                               SumWords(m, words, columns, sums) +
                               (sums == GemmSums::kFlipped ? Tiles::kBlockM * Tiles::kStripN : 0));
  }
};

// Sizes of products in AMX's tiles (amx_product.h):
//   kSteps           steps of k in a word of a packed matrix
//   kPlanes          numbers of bf16 whose sum is an element
//   kTileM, kStripN  rows of a tile, and columns of a strip of B.
//                    The strip stays in the second-level cache
//                    while all rows of a span pass.
//   kSpanM, kBlockN  rows of a span, which are packed once for a block of kBlockN columns
//   kReadsA          whether tiles may read A in place
//   kPackCost, kReadCost: GemmTiles::pack_cost and read_cost, measured
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

// The scratch of products in AMX's tiles. `Sizes` is derived from one of the two structs above.
template <typename Sizes>
struct AmxScratch {
  static constexpr int64_t kBlockWords = 768, kPanelColumns = 48, kGroupSteps = 32;

  static constexpr int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
  static constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
  }
  static constexpr int64_t Words(int64_t k) { return (k + Sizes::kSteps - 1) / Sizes::kSteps; }
  static constexpr int64_t BlockColumns(int64_t n) { return Smaller(RoundUp(n, kPanelColumns), Sizes::kBlockN); }

  // Words of `rows` packed rows of A, or columns of B, for one block of k, as pairs of bf16.
  static constexpr int64_t PackedWords(int64_t rows, int64_t k) {
    const int64_t steps = RoundUp(Smaller(k, kBlockWords * Sizes::kSteps), kGroupSteps);
    return rows * (steps / 2 * Sizes::kPlanes);
  }
  // True if B has a single strip: each tile of A is then packed when it is used, not a whole span for all strips.
  static constexpr bool PacksTiles(int64_t n) { return n <= Sizes::kStripN; }
  static constexpr int64_t PackedAWords(int64_t m, int64_t n, int64_t k) {
    return PackedWords(Smaller(RoundUp(m, Sizes::kTileM), PacksTiles(n) ? Sizes::kTileM : Sizes::kSpanM), k);
  }
  static constexpr int64_t StripColumns(int64_t n) { return Smaller(RoundUp(n, kPanelColumns), Sizes::kStripN); }
  static constexpr int64_t PackedBWords(int64_t n, int64_t k) { return PackedWords(StripColumns(n), k); }
  // Words of the sums of a tile.
  static constexpr int64_t SumWords(int64_t n) { return Sizes::kTileM * StripColumns(n); }
  // Words of sums over several blocks of k, which are kept in scratch if C cannot hold them.
  static constexpr int64_t SpanWords(int64_t m, int64_t n, int64_t k, GemmSums sums) {
    if (sums == GemmSums::kInC || Words(k) <= kBlockWords) return 0;
    return RoundUp(Smaller(m, Sizes::kSpanM) * BlockColumns(n), 16);
  }

  // Returns whether A is read in place: k is contiguous and fills whole registers, and the distance of rows does not
  // put them into few sets of the first-level cache.
  static bool ReadsA(int64_t k, int64_t stride_m, int64_t stride_k) {
    constexpr int64_t kFewSets = 512;
    return Sizes::kReadsA && stride_k == 1 && k % kGroupSteps == 0 && stride_m % kFewSets != 0;
  }

  // Implements GemmTiles::scratch_words. Packed matrices of f32 need room too, because the tiles split them.
  static size_t AllWords(int64_t m, int64_t n, int64_t k, GemmSums sums, bool b_packed) {
    const bool packs_b = !b_packed || Sizes::kPlanes > 1;
    return static_cast<size_t>(SumWords(n) + PackedAWords(m, n, k) + (packs_b ? PackedBWords(n, k) : 0) +
                               SpanWords(m, n, k, sums));
  }
};

template <typename Tiles>
constexpr GemmTiles VectorTilesOf() {
  // Packing or reading an element costs about a seventh of the time that a tile takes for one row and step of k.
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
