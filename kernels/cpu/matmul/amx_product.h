#ifndef BOWLINE_KERNELS_CPU_MATMUL_AMX_PRODUCT_H_
#define BOWLINE_KERNELS_CPU_MATMUL_AMX_PRODUCT_H_

// Divides a product into blocks for AMX's tiles. A packed strip of B stays in the second-level cache while all rows of
// a span of A pass. Prefetches between the tiles fetch rows of A from memory. A is read in place, packed tile by tile,
// or packed once per span for all strips of a block of columns. Only for files compiled for AMX.

#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/matmul/blocks.h"
#include "kernels/cpu/matmul/finish.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/gemm_scratch.h"
#include "kernels/cpu/matmul/prefetch.h"
#include "kernels/cpu/matmul/tile.h"

namespace bowline::kernels::BOWLINE_ISA {

// `Tiles` multiplies the tiles and has
//   Source, Sizes                  the type of an element, and sizes (gemm_scratch.h)
//   PackA, PackB(extent, steps, ...)
//                                  copy `extent` rows or columns of `steps` steps of k, AmxScratch::PackedWords words
//   Rows, Columns                  where Multiply finds operands, returned by PackedRows(packed, row, steps),
//                                  RowsInPlace(a, stride) and PackedColumns(packed, steps)
//   kReadsPackedMatrices           whether panels of packed matrices (packed_matrix.h) have the form that PackB writes
//   PrefetchSteps(columns, steps)  how often Multiply steps the prefetcher
//   Multiply(rows, columns, steps, a, b, sums, ld, prefetcher)
//                                  sums[rows][columns] = A B for up to kTileM rows; rows of `sums` are ld words apart.
//                                  May write elements of `sums` up to RoundUp(columns, 16).
template <typename Tiles>
class AmxProduct {
 public:
  using Source = typename Tiles::Source;
  using Sizes = typename Tiles::Sizes;
  using Scratch = AmxScratch<Sizes>;

  AmxProduct(const GemmShape& shape, const Source* a, const void* b, const GemmOutput& output, float* scratch)
      : shape_(shape),
        a_(a),
        b_(static_cast<const Source*>(b)),
        output_(output),
        block_(BlockWords(Scratch::Words(shape.k)) * Sizes::kSteps),
        whole_b_(shape.packed_n > 0 ? static_cast<const float*>(b) : nullptr),
        in_c_(output.kind == GemmResult::kF32 && shape.c_n == 1),
        in_place_a_(Scratch::ReadsA(shape.k, shape.a_m, shape.a_k)),
        packs_tiles_(!in_place_a_ && Scratch::PacksTiles(shape.n)),
        tile_ld_(Scratch::StripColumns(shape.n)),
        tile_sums_(scratch),
        packed_a_(tile_sums_ + Scratch::SumWords(shape.n)),
        packed_b_(packed_a_ + Scratch::PackedAWords(shape.m, shape.n, shape.k)),
        span_sums_(packed_b_ + (PacksB() ? Scratch::PackedBWords(shape.n, shape.k) : 0)) {}
  AmxProduct(const AmxProduct&) = delete;
  AmxProduct& operator=(const AmxProduct&) = delete;
  ~AmxProduct() {
    // Only a fence orders non-temporal stores before the barrier that tells other threads that this one is done.
    if (streams_) __builtin_ia32_sfence();
  }

  void Run() {
    for (n0_ = 0; n0_ < shape_.n; n0_ += Sizes::kBlockN) {
      nb_ = Smaller(shape_.n - n0_, Sizes::kBlockN);
      for (m0_ = 0; m0_ < shape_.m; m0_ += Sizes::kSpanM) {
        mb_ = Smaller(shape_.m - m0_, Sizes::kSpanM);
        RunSpan();
      }
    }
  }

 private:
  static constexpr int64_t kTileM = Sizes::kTileM, kStripN = Sizes::kStripN;
  static_assert(Scratch::kBlockWords == kBlockWords, "matrices packed before products have the blocks of products");
  static_assert(Scratch::kPanelColumns == kTileN && kStripN % (2 * kTileN) == 0);

  bool PacksB() const { return whole_b_ == nullptr || !Tiles::kReadsPackedMatrices; }

  // Multiplies all of k for the span's rows and the block's columns.
  void RunSpan() {
    for (k0_ = 0; k0_ < shape_.k; k0_ += block_) {
      kb_ = Smaller(shape_.k - k0_, block_);
      const Source* a = a_ + m0_ * shape_.a_m + k0_ * shape_.a_k;
      if (!in_place_a_ && !packs_tiles_) tiles_.PackA(mb_, kb_, a, shape_.a_m, shape_.a_k, packed_a_);
      // Strips of equal size, because all of A passes for each strip, however narrow the last one would be.
      const int64_t strip = RoundUp(CeilDiv(nb_, CeilDiv(nb_, kStripN)), 2 * kTileN);
      for (int64_t j0 = 0; j0 < nb_; j0 += strip) {
        const int64_t columns = Smaller(nb_ - j0, strip);
        const typename Tiles::Columns b = ColumnsOfB(n0_ + j0, columns);
        for (int64_t i = 0; i < mb_; i += kTileM) RunTile(a, i, b, j0, columns);
      }
    }
  }

  // Columns [n, n + columns) of B for this block of k, packed if they are not yet.
  typename Tiles::Columns ColumnsOfB(int64_t n, int64_t columns) {
    if (whole_b_ == nullptr) {
      const Source* b = b_ + k0_ * shape_.b_k + n * shape_.b_n;
      tiles_.PackB(columns, kb_, b, shape_.b_k, shape_.b_n, packed_b_);
      return tiles_.PackedColumns(packed_b_, kb_);
    }
    // Rows of a panel, one per word of k; zeros fill up the last block of bf16 pairs.
    const int64_t rows = Sizes::kSteps == 1 ? kb_ : RoundUp(kb_, Scratch::kGroupSteps) / 2;
    const float* panels = whole_b_ + k0_ / Sizes::kSteps * shape_.packed_n + (shape_.packed_n0 + n) * rows;
    if constexpr (Tiles::kReadsPackedMatrices) {
      return tiles_.PackedColumns(panels, kb_);
    } else {
      return tiles_.PackPanels(columns, kb_, panels, packed_b_);
    }
  }

  // Up to kTileM rows of the span from row `i` on. `a` is at the span's first row and this block of k.
  typename Tiles::Rows RowsOfA(const Source* a, int64_t i) {
    if (packs_tiles_) {
      tiles_.PackA(Smaller(mb_ - i, kTileM), kb_, a + i * shape_.a_m, shape_.a_m, shape_.a_k, packed_a_);
      return tiles_.PackedRows(packed_a_, 0, kb_);
    }
    return in_place_a_ ? tiles_.RowsInPlace(a + i * shape_.a_m, shape_.a_m) : tiles_.PackedRows(packed_a_, i, kb_);
  }

  // Prefetches the tile of A that is next; after the span's last tile, that is the first one, for the next strip.
  void PrefetchAfter(const Source* a, int64_t i, int64_t columns) {
    const int64_t next = i + kTileM < mb_ ? i + kTileM : 0, rows = Smaller(mb_ - next, kTileM);
    const int64_t steps = Tiles::PrefetchSteps(columns, kb_);
    constexpr int64_t kBytes = sizeof(Source);
    if (packs_tiles_ && shape_.a_m == 1) {
      prefetcher_.Begin(a + next, kb_, rows * kBytes, shape_.a_k * kBytes, steps);
    } else if (in_place_a_ || packs_tiles_) {
      prefetcher_.Begin(a + next * shape_.a_m, rows, kb_ * kBytes, shape_.a_m * kBytes, steps);
    } else {
      const int64_t words = RoundUp(kb_, Scratch::kGroupSteps) / 2 * Sizes::kPlanes;
      prefetcher_.Begin(packed_a_ + next * words, 1, rows * words * 4, 0, steps);
    }
  }

  // Multiplies up to kTileM rows of the span from `i` on by `columns` columns of the block from j0 on.
  void RunTile(const Source* a, int64_t i, const typename Tiles::Columns& b, int64_t j0, int64_t columns) {
    const bool first = k0_ == 0, last = k0_ + kb_ == shape_.k;
    const int64_t rows = Smaller(mb_ - i, kTileM), m = m0_ + i, n = n0_ + j0;
    PrefetchAfter(a, i, columns);
    const auto multiply = [&](float* sums, int64_t ld) {
      tiles_.Multiply(rows, columns, kb_, RowsOfA(a, i), b, sums, ld, prefetcher_);
    };
    if (in_c_) {
      multiply(tile_sums_, tile_ld_);
      float* c = static_cast<float*>(output_.c) + m * shape_.c_m + n;
      return AddRows(rows, columns, tile_sums_, c, shape_.c_m, shape_.accumulate || !first, output_.streamed && last);
    }
    if (first && last) {
      multiply(tile_sums_, tile_ld_);
      if (shape_.accumulate) AddC(m, n, rows, columns);
      return FinishRows(m, n, rows, columns, tile_sums_, tile_ld_);
    }
    const int64_t ld = RoundUp(nb_, kTileN);
    float* sums = span_sums_ + i * ld + j0;
    if (first && !shape_.accumulate) return multiply(sums, ld);
    if (first) LoadC(shape_, output_, m, n, rows, columns, sums, ld);
    multiply(tile_sums_, tile_ld_);
    AddRows(rows, columns, tile_sums_, sums, ld, /*accumulate=*/true, /*streamed=*/false);
    if (last) FinishRows(m, n, rows, columns, sums, ld);
  }

  // Adds the values of C to the sums of a tile.
  void AddC(int64_t m, int64_t n, int64_t rows, int64_t columns) {
    const float* c = static_cast<const float*>(output_.c) + m * shape_.c_m + n * shape_.c_n;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) tile_sums_[i * tile_ld_ + j] += c[i * shape_.c_m + j * shape_.c_n];
    }
  }

  void FinishRows(int64_t m, int64_t n, int64_t rows, int64_t columns, const float* from, int64_t ld) {
    streams_ = streams_ || output_.streamed;
    Finish(output_, shape_.c_m, shape_.c_n, m, n, rows, columns, from, ld);
  }

  // C = sums, or C += sums with `accumulate`. `streamed` stores bypass the caches if C is aligned for them.
  void AddRows(int64_t rows, int64_t columns, const float* sums, float* c, int64_t ld, bool accumulate, bool streamed) {
    if (accumulate) {
      WriteRows(
          rows, columns, sums, c, ld, [](float* to, Vec sum) { Store(to, Load(to) + sum); },
          [](float* to, float sum) { *to += sum; });
    } else if (streamed && reinterpret_cast<uintptr_t>(c) % sizeof(Vec) == 0 && ld % kLanes == 0) {
      WriteRows(
          rows, columns, sums, c, ld,
          [](float* to, Vec sum) { __builtin_nontemporal_store(sum, reinterpret_cast<Vec*>(to)); },
          [](float* to, float sum) { *to = sum; });
      streams_ = true;
    } else {
      WriteRows(
          rows, columns, sums, c, ld, [](float* to, Vec sum) { Store(to, sum); },
          [](float* to, float sum) { *to = sum; });
    }
  }
  template <typename WriteVector, typename WriteOne>
  void WriteRows(int64_t rows, int64_t columns, const float* sums, float* c, int64_t ld, WriteVector write,
                 WriteOne write_one) const {
    for (int64_t i = 0; i < rows; ++i) {
      const float* from = sums + i * tile_ld_;
      float* to = c + i * ld;
      int64_t j = 0;
      for (; j + kLanes <= columns; j += kLanes) write(to + j, Load(from + j));
      for (; j < columns; ++j) write_one(to + j, from[j]);
    }
  }

  const GemmShape& shape_;
  const Source *a_, *b_;
  const GemmOutput& output_;
  const int64_t block_;         // most steps in a block of k
  const float* const whole_b_;  // a buffer of pack_matrix; null: B is packed here
  const bool in_c_;             // C is f32 with contiguous rows, so sums of each block of k are added to it directly
  const bool in_place_a_, packs_tiles_;
  const int64_t tile_ld_;  // words from a row of tile_sums_ to the next
  float *const tile_sums_, *const packed_a_, *const packed_b_, *const span_sums_;
  int64_t n0_ = 0, nb_ = 0;  // the block of columns: its first one and their number
  int64_t m0_ = 0, mb_ = 0;  // the span of rows, likewise
  int64_t k0_ = 0, kb_ = 0;  // the block of k, likewise
  bool streams_ = false;
  Prefetcher prefetcher_;
  Tiles tiles_;
};

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_AMX_PRODUCT_H_
