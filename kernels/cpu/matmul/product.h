#ifndef BOWLINE_KERNELS_CPU_MATMUL_PRODUCT_H_
#define BOWLINE_KERNELS_CPU_MATMUL_PRODUCT_H_

// Divides a product into blocks for caches and tiles of vector registers. Only for *_isa.cc files.

#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/matmul/blocks.h"
#include "kernels/cpu/matmul/finish.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/gemm_scratch.h"
#include "kernels/cpu/matmul/pack.h"
#include "kernels/cpu/matmul/prefetch.h"
#include "kernels/cpu/matmul/tile.h"

namespace bowline::kernels::BOWLINE_ISA {

// Computes a product, block by block. `Tiles` multiplies the tiles and has
//   Operand                    how elements become words (operand.h)
//   the members for GemmScratch (gemm_scratch.h), where kTileM is the most rows of C that Multiply takes
//   MultiplyInPlace            multiplies kTileN columns of B in place, for at most kTileM rows
//   ReadsA(shape)              whether tiles read A in place
//   PackA(rows, steps, src, stride_m, stride_k, dst): packs the rows into tiles of kTileM rows, kTileM * words each
//   Multiply(rows, columns, words, a, panels, column, c, prefetcher)
//                              multiplies up to kTileN columns of the panels, from `column` on. It writes whole vectors
//                              of C, even if the last one has fewer columns.
template <typename Tiles>
class Product {
 public:
  using Operand = typename Tiles::Operand;
  using Source = typename Operand::Source;
  using Scratch = GemmScratch<Tiles>;
  static_assert(Scratch::kBlockWords == kBlockWords, "matrices packed before products have the blocks of products");
  static constexpr int64_t kSteps = Operand::kStepsPerWord, kTileM = Tiles::kTileM, kBlockM = Tiles::kBlockM,
                           kStripN = Tiles::kStripN;

  Product(const GemmShape& shape, const Source* a, const void* b, const GemmOutput& output, float* scratch)
      : shape_(shape),
        a_(a),
        b_(static_cast<const Source*>(b)),
        output_(output),
        flipped_(output.flipped),
        words_(CeilDiv(shape.k, kSteps)),
        block_(BlockWords(words_)),
        whole_b_(shape.packed_n > 0 ? static_cast<const float*>(b) : nullptr) {
    output_.streamed = false;  // later readers of C, such as sums that are added to it, find it in a cache
    direct_c_ = output.kind == GemmResult::kF32 && shape.c_n == 1;
    // Only one tile uses a panel of B, so a copy does not pay if the rows of B are contiguous.
    direct_b_ = whole_b_ == nullptr && shape.m <= kTileM && shape.b_n == 1 && shape.k % kSteps == 0;
    direct_a_ = !direct_b_ && Tiles::ReadsA(shape);
    packed_a_ = scratch;
    packed_b_ = packed_a_ + Scratch::PackedAWords(shape.m, words_);
    block_n_ = Scratch::BlockColumns(shape.n, whole_b_ != nullptr);
    sums_ = packed_b_ + (whole_b_ != nullptr ? 0 : Scratch::PackedBWords(block_n_, words_));
    if (flipped_) {
      flip_ = sums_ + Scratch::SumWords(shape.m, words_, block_n_, GemmSums::kFlipped);
      output_.m0 = output.n0;
      output_.n0 = output.m0;
    }
  }

  void Run() {
    // If sums are kept in scratch, a block of C is finished before the next one begins. C itself can hold all sums, so
    // that B is packed only once.
    const int64_t span = direct_c_ ? shape_.m : Scratch::kSpanM;
    for (n0_ = 0; n0_ < shape_.n; n0_ += block_n_) {
      nb_ = Smaller(shape_.n - n0_, block_n_);
      whole_ = direct_b_ ? nb_ / kTileN * kTileN : 0;
      for (int64_t m = 0; m < shape_.m; m += span) RunSpan(m, Smaller(m + span, shape_.m));
    }
  }

 private:
  static constexpr int kWideVecs = 3 * kVecs;  // vectors of a single row

  void RunSpan(int64_t begin, int64_t end) {
    begin_ = begin;
    for (w0_ = 0; w0_ < words_; w0_ += block_) {
      wb_ = Smaller(words_ - w0_, block_);
      const int64_t k0 = w0_ * kSteps, kb = Smaller(shape_.k - k0, wb_ * kSteps);
      PackB(k0, kb);
      for (int64_t m0 = begin; m0 < end; m0 += kBlockM) {
        const int64_t mb = Smaller(end - m0, kBlockM);
        const Source* a = a_ + m0 * shape_.a_m + k0 * shape_.a_k;
        if (!direct_a_) Tiles::PackA(mb, kb, a, shape_.a_m, shape_.a_k, packed_a_);
        PrefetchAfter(a, m0 + mb, end, kb, CeilDiv(mb, kTileM) * CeilDiv(nb_, kTileN));
        for (int64_t j0 = 0; j0 < nb_; j0 += kStripN) {
          for (int64_t i = 0; i < mb; i += kTileM) {
            panel_a_ = packed_a_ + i * wb_;
            RunStrip(m0, i, Smaller(mb - i, kTileM), j0, Smaller(nb_, j0 + kStripN));
          }
          if (flipped_ && w0_ + wb_ == words_) FinishFlipped(m0, mb, j0, Smaller(nb_, j0 + kStripN));
        }
      }
    }
  }

  // Prefetches the block of A that comes after the one at `a`, which ends before row m1; the span ends before `end`.
  void PrefetchAfter(const Source* a, int64_t m1, int64_t end, int64_t kb, int64_t tiles) {
    if (m1 < end) {
      Prefetch(a + kBlockM * shape_.a_m, Smaller(end - m1, kBlockM), kb, tiles);
    } else if (w0_ + wb_ < words_) {
      const int64_t k1 = (w0_ + wb_) * kSteps, rows = Smaller(end - begin_, kBlockM);
      Prefetch(a_ + begin_ * shape_.a_m + k1 * shape_.a_k, rows, Smaller(shape_.k - k1, block_ * kSteps), tiles);
    } else if (shape_.next_a != nullptr && n0_ + nb_ == shape_.n && m1 == shape_.m) {
      Prefetch(static_cast<const Source*>(shape_.next_a), Smaller(shape_.next_m, kBlockM),
               Smaller(shape_.k, block_ * kSteps), tiles);
    } else {
      prefetcher_.End();
    }
  }

  void Prefetch(const Source* from, int64_t rows, int64_t steps, int64_t tiles) {
    constexpr int64_t kBytes = sizeof(Source);
    if (shape_.a_k == 1) {
      prefetcher_.Begin(from, rows, steps * kBytes, shape_.a_m * kBytes, tiles);
    } else if (shape_.a_m == 1) {
      prefetcher_.Begin(from, steps, rows * kBytes, shape_.a_k * kBytes, tiles);
    }
  }

  void PackB(int64_t k0, int64_t kb) {
    if (whole_b_ != nullptr) {
      const int64_t rows = PanelWords<Operand>(wb_);
      panels_ = {whole_b_ + w0_ * shape_.packed_n + (shape_.packed_n0 + n0_) * rows, rows * kTileN};
      return;
    }
    b_block_ = b_ + k0 * shape_.b_k + n0_ * shape_.b_n;
    Pack<Operand, kTileN>(nb_ - whole_, kb, b_block_ + whole_ * shape_.b_n, shape_.b_n, shape_.b_k, packed_b_, wb_);
    panels_ = {packed_b_, wb_ * kTileN};
  }

  // Returns the address of the sum for row m0 of C and column j0 of the block. Row m0 is row `i` of the block of A.
  // Sets *ld to the number of floats between rows.
  float* SumsAt(int64_t m0, int64_t i, int64_t j0, int64_t* ld) const {
    if (direct_c_) {
      *ld = shape_.c_m;
      return static_cast<float*>(output_.c) + m0 * shape_.c_m + n0_ + j0;
    }
    *ld = RoundUp(nb_, kTileN);
    if (block_ < words_) return sums_ + (m0 - begin_) * *ld + j0;
    if (!flipped_) return sums_ + j0;
    *ld = Smaller(*ld, kStripN);
    return sums_ + i * *ld;
  }

  // Multiplies `rows` rows of C, the first of which is row `i` of the block of A that begins with row m_block, by the
  // columns [j0, j1) of the block.
  void RunStrip(int64_t m_block, int64_t i, int64_t rows, int64_t j0, int64_t j1) {
    const bool first = w0_ == 0, last = w0_ + wb_ == words_;
    const int64_t m0 = m_block + i;
    int64_t ld;
    float* out = SumsAt(m0, i, j0, &ld);
    if (!direct_c_ && first && shape_.accumulate) LoadC(shape_, output_, m0, n0_ + j0, rows, j1 - j0, out, ld);
    const bool accumulate = shape_.accumulate || !first;
    int64_t j = j0;
    if (shape_.m == 1) {  // so wide that each step reads several consecutive lines of B
      for (; j + kWideVecs * kLanes <= Smaller(j1, whole_); j += kWideVecs * kLanes) {
        Multiply<Operand, 1, kWideVecs>(wb_, PackedColumns<Operand>{panel_a_},
                                        DirectRows<Operand>{b_block_ + j, shape_.b_k}, out + (j - j0), 0, accumulate);
      }
    }
    for (; j < j1; j += kTileN) RunTile(m0, rows, Smaller(j1 - j, kTileN), j, out + (j - j0), ld, accumulate);
    if (!direct_c_ && last && !flipped_) {
      Finish(output_, shape_.c_m, shape_.c_n, m0, n0_ + j0, rows, j1 - j0, out, ld);
    }
  }

  // Transposes and finishes the product of a whole block of A and a strip of B, so that rows of C are long.
  void FinishFlipped(int64_t m0, int64_t rows, int64_t j0, int64_t j1) {
    int64_t ld;
    const float* sums = SumsAt(m0, 0, j0, &ld);
    Flip(sums, ld, rows, j1 - j0, flip_, kBlockM);
    Finish(output_, shape_.c_n, shape_.c_m, n0_ + j0, m0, j1 - j0, rows, flip_, kBlockM);
  }

  void RunTile(int64_t m0, int64_t rows, int64_t columns, int64_t j, float* out, int64_t ld, bool accumulate) {
    if (j < whole_) {
      prefetcher_.Step();
      return Tiles::MultiplyInPlace(rows, wb_, panel_a_, b_block_ + j, shape_.b_k, out, ld, accumulate);
    }
    if (!direct_c_ || columns % kLanes == 0) {
      return MultiplyTile(m0, rows, columns, j, out, ld, accumulate);
    }
    // C ends within a vector.
    MultiplyTile(m0, rows, columns, j, sums_, kTileN, false);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t c = 0; c < columns; ++c) {
        float& element = out[i * ld + c];
        element = accumulate ? element + sums_[i * kTileN + c] : sums_[i * kTileN + c];
      }
    }
  }

  // The same with packed B. Writes whole vectors of columns.
  void MultiplyTile(int64_t m0, int64_t rows, int64_t columns, int64_t j, float* out, int64_t ld, bool accumulate) {
    const Source* a = direct_a_ ? a_ + m0 * shape_.a_m + w0_ * kSteps : nullptr;
    Tiles::Multiply(rows, columns, wb_, TileOfA<Source>{panel_a_, a, shape_.a_m}, panels_, j - whole_,
                    TileOfC{out, ld, accumulate}, prefetcher_);
  }

  const GemmShape& shape_;
  const Source *a_, *b_;
  GemmOutput output_;  // if flipped, m0 and n0 are those of the transposed result
  const bool flipped_;
  const int64_t words_, block_;  // words of k, and most words of a block of k
  const float* const whole_b_;   // a buffer of pack_matrix; null: B is packed here
  bool direct_c_, direct_b_, direct_a_;
  float *packed_a_, *packed_b_, *sums_, *flip_;
  int64_t block_n_;
  int64_t begin_;            // the span's first row
  int64_t n0_, nb_, whole_;  // the block's first column, its columns, and how many of them are read in place
  int64_t w0_, wb_;          // the block's first word of k, and its words
  const Source* b_block_;
  Panels panels_;         // panels of the block's columns from whole_ on
  const float* panel_a_;  // panel of the tile's rows, unless A is read in place
  Prefetcher prefetcher_;
};

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_PRODUCT_H_
