#include "kernels/cpu/matmul/matmul_division.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/kernel_needs.h"
#include "kernels/cpu/matmul/packed_form.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// C^T = B^T A^T
MatmulShape Transposed(const MatmulShape& s) {
  MatmulShape t = s;
  std::swap(t.m, t.n);
  t.a = {s.b[0], s.b[2], s.b[1]};
  t.b = {s.a[0], s.a[2], s.a[1]};
  t.c = {s.c[0], s.c[2], s.c[1]};
  return t;
}

// The kernel writes whole vectors along n, so n should be the contiguous dimension of C: C^T = B^T A^T otherwise.
MatmulShape Oriented(const MatmulShape& s, bool* swapped) {
  // A single column is turned into a single row, which has its own fast paths.
  const bool m_contiguous = s.m > 1 && (s.c[1] == 1 || s.n == 1);
  const bool n_contiguous = s.n > 1 && s.c[2] == 1;
  *swapped = !n_contiguous && m_contiguous;
  return *swapped ? Transposed(s) : s;
}

// Returns how many of the threads get work for kLeastNanoseconds each. Threads pack a divided product in more,
// smaller steps, so one thread computes a product alone if it is about as fast. The rates are those of a core with
// AVX-512, also for other cores: plans size scratch for these threads, and may come from another machine.
int UsefulThreads(const MatmulShape& s, int threads) {
  constexpr double kLeastNanoseconds = 2000;  // measured: products of 4 us take 3 us on two threads
  constexpr double kBytesPerNanosecond = 20;
  const double flops_per_nanosecond = s.operands == DType::kBF16 ? 200 : 100;
  const double batch = static_cast<double>(s.batch), m = static_cast<double>(s.m), n = static_cast<double>(s.n),
               k = static_cast<double>(s.k), operand_bytes = static_cast<double>(SizeOf(s.operands));
  const double nanoseconds =
      batch * std::max(2 * m * n * k / flops_per_nanosecond, operand_bytes * (m * k + k * n) / kBytesPerNanosecond);
  const double useful = nanoseconds / kLeastNanoseconds;
  return useful < threads ? std::max(1, static_cast<int>(useful)) : threads;
}

// The grid whose busiest thread takes least time, in multiply-adds: those of its pieces, and the packing of both
// operands.
MatmulGrid ChooseGrid(const MatmulShape& s, int threads, const GemmTiles& gemm, int tile_n) {
  const int64_t tiles_m = CeilDiv(s.m, gemm.tile_m), tiles_n = CeilDiv(s.n, tile_n);
  const bool reads_a = gemm.reads_a != nullptr && gemm.reads_a(s.k, s.a[1], s.a[2]);
  const double cost_a = reads_a ? gemm.read_cost : gemm.pack_cost, cost_b = s.b_packed ? 0.0 : gemm.pack_cost;
  MatmulGrid best;
  double best_cost = -1;
  for (int64_t m_parts = 1; m_parts <= std::min<int64_t>(threads, tiles_m); ++m_parts) {
    for (int64_t n_parts = 1; n_parts <= std::min<int64_t>(threads, tiles_n); ++n_parts) {
      const double pieces = static_cast<double>(CeilDiv(s.batch * m_parts * n_parts, threads));
      const double piece_m = static_cast<double>(CeilDiv(tiles_m, m_parts)) * gemm.tile_m;
      const double piece_n = static_cast<double>(CeilDiv(tiles_n, n_parts)) * tile_n;
      const double cost = pieces * (piece_m * piece_n + cost_a * piece_m + cost_b * piece_n);
      if (best_cost < 0 || cost < best_cost) {
        best_cost = cost;
        best = {m_parts, n_parts};
      }
    }
  }
  return best;
}

MatmulSharing ChooseSharing(const MatmulShape& s, int threads, int64_t words_of_k, const GemmTiles& gemm, int tile_n) {
  constexpr int64_t kPackedWords = 3 << 20;  // 12 MiB: stays in a last-level cache
  constexpr int64_t kFewColumns = 384;       // A is packed again for each chunk, so a chunk has at least so many
  const int64_t columns = CeilDiv(s.n, tile_n) * tile_n;
  int64_t chunk_n = columns;
  if (!s.b_packed && columns * words_of_k > kPackedWords) {
    const int64_t chunks = CeilDiv(columns * words_of_k, kPackedWords);
    chunk_n = CeilDiv(CeilDiv(columns, chunks), tile_n) * tile_n;
    if (chunk_n < kFewColumns) return {};
  }
  // Each thread gets as many units, which are equal up to one tile.
  const int64_t tiles = CeilDiv(s.m, gemm.tile_m);
  const int64_t units = threads * CeilDiv(tiles * gemm.tile_m, threads * gemm.unit_m);
  if (s.batch > 1 || tiles < 2 * units) return {};
  return {chunk_n, units, CeilDiv(tiles, units) * gemm.tile_m};
}

// Whether to compute C^T and to transpose blocks of it: then A is packed and B, whose rows are contiguous in k too, is
// read in place. Transposing costs, so it is worth it only where B is much the larger one.
bool WorthFlipping(const MatmulShape& s, bool words_in_memory) {
  constexpr int64_t kFewRows = 128;  // fewer are multiplied too fast for B to arrive in time
  return words_in_memory && s.batch == 1 && !s.accumulate && !s.b_packed && s.a[2] == 1 && s.b[1] == 1 && s.c[2] == 1 &&
         s.c[1] >= s.n && s.m >= kFewRows && s.n >= 8 * s.m;
}

}  // namespace

size_t MatmulDivision::ScratchBytes() const {
  if (sharing.chunk_n > 0) return shared_bytes + scratch_bytes * static_cast<size_t>(threads);
  const int64_t pieces = shape.batch * grid.m_parts * grid.n_parts;
  return scratch_bytes * static_cast<size_t>(std::min<int64_t>(threads, pieces));
}

MatmulDivision DivideMatmul(const MatmulShape& shape, bool has_epilogue, int threads, const GemmLevel& level,
                            const GemmTiles& tiles) {
  MatmulDivision d;
  d.threads = UsefulThreads(shape, threads);
  // An epilogue wants rows and columns as they are.
  d.shape = has_epilogue ? shape : Oriented(shape, &d.swapped);
  MatmulShape& s = d.shape;
  d.dot = s.m == 1 && (s.a[2] == 1 || s.k == 1) && (s.b[1] == 1 && s.b[2] != 1);
  const bool pairs = shape.operands == DType::kBF16 && level.bf16_pairs;
  const int64_t words = pairs ? CeilDiv(s.k, kPackedSteps) * kPackedSteps / 2 : s.k;
  const bool stores_f32 = !has_epilogue && shape.result == DType::kF32;
  GemmSums sums = stores_f32 && (s.c[2] == 1 || s.n == 1) ? GemmSums::kInC : GemmSums::kInScratch;
  if (tiles.shares_b && WorthFlipping(s, shape.operands == DType::kF32 || (pairs && s.k % 2 == 0))) {
    const MatmulShape flipped = Transposed(s);
    d.sharing = ChooseSharing(flipped, d.threads, words, tiles, level.tile_n);
    if (d.sharing.chunk_n > 0) {
      s = flipped;
      d.flipped = true;
      d.swapped = !d.swapped;
      sums = GemmSums::kFlipped;
    }
  }
  if (tiles.shares_b && !d.flipped && d.threads > 1)
    d.sharing = ChooseSharing(s, d.threads, words, tiles, level.tile_n);
  if (d.sharing.chunk_n > 0) {
    d.scratch_bytes = sizeof(float) * tiles.scratch_words(d.sharing.unit_m, std::min(d.sharing.chunk_n, s.n), s.k, sums,
                                                          /*b_packed=*/true);
    d.shared_bytes = s.b_packed ? 0 : sizeof(float) * static_cast<size_t>(d.sharing.chunk_n * words);
    return d;
  }
  d.grid = ChooseGrid(s, d.threads, tiles, level.tile_n);
  d.piece_m = CeilDiv(CeilDiv(s.m, tiles.tile_m), d.grid.m_parts) * tiles.tile_m;
  d.piece_n = CeilDiv(CeilDiv(s.n, level.tile_n), d.grid.n_parts) * level.tile_n;
  // Rounding up to tiles may leave the last parts empty.
  d.grid = {CeilDiv(s.m, d.piece_m), CeilDiv(s.n, d.piece_n)};
  d.scratch_bytes =
      sizeof(float) * tiles.scratch_words(std::min(d.piece_m, s.m), std::min(d.piece_n, s.n), s.k, sums, s.b_packed);
  return d;
}

absl::StatusOr<size_t> MatmulScratch(const Signature& signature, Isa isa) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const MatmulShape shape, ParseMatmul(signature));
  if (shape.b_packed) BOWLINE_KERNEL_RETURN_IF_ERROR(CheckPackedProduct(signature, shape, isa));
  const GemmLevel& level = GemmLevelOf(isa);
  const GemmTiles& tiles = IsForAmx(shape, isa) ? GemmTilesOfAmx(shape.operands) : level.Of(shape.operands);
  return DivideMatmul(shape, signature.has_epilogue, signature.threads, level, tiles).ScratchBytes();
}

absl::StatusOr<size_t> PackMatrixScratch(const Signature& signature, Isa isa) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const PackShape shape, ParsePackMatrix(signature));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckPacked(signature, 1, shape.k, shape.n, isa));
  return 0;
}

}  // namespace bowline::kernels
