#include <algorithm>
#include <utility>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/packed_check.h"
#include "kernels/cpu/matmul/packed_matrix.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/registry/signature_check.h"
#include "kernels/signatures/matmul_signature.h"

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

// No more threads than get work for kLeastNanoseconds each. What is divided is packed in more, smaller steps, so a
// product that one thread may as well compute is not. By rates of a core with AVX-512, of any other too: scratch is
// sized for these threads, and a plan may come from another machine.
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

// Cuts each matrix of the batch into m_parts x n_parts pieces, the unit of work of a thread. How it is cut does not
// change a bit of the result (gemm.h).
struct Grid {
  int64_t m_parts = 1, n_parts = 1;
};

Grid ChooseGrid(const MatmulShape& s, int threads, int tile_m, int tile_n) {
  const int64_t tiles_m = CeilDiv(s.m, tile_m), tiles_n = CeilDiv(s.n, tile_n);
  // A thread's time in units of multiply-adds of one tile step: the tiles themselves and the packing of both operands,
  // where moving an element costs about a seventh of a row of a tile.
  constexpr double kPackCost = 0.15;
  Grid best;
  double best_cost = -1;
  for (int64_t m_parts = 1; m_parts <= std::min<int64_t>(threads, tiles_m); ++m_parts) {
    for (int64_t n_parts = 1; n_parts <= std::min<int64_t>(threads, tiles_n); ++n_parts) {
      const double pieces = static_cast<double>(CeilDiv(s.batch * m_parts * n_parts, threads));
      const double piece_m = static_cast<double>(CeilDiv(tiles_m, m_parts)) * tile_m;
      const double piece_n = static_cast<double>(CeilDiv(tiles_n, n_parts)) * tile_n;
      const double cost = pieces * (piece_m * piece_n / tile_n + kPackCost * (piece_m + (s.b_packed ? 0.0 : piece_n)));
      if (best_cost < 0 || cost < best_cost) {
        best_cost = cost;
        best = {m_parts, n_parts};
      }
    }
  }
  return best;
}

// How threads share a product whose B is packed: chunks of columns, each packed by all threads together, whose rows are
// handed out in units. Unlike pieces of a grid, nothing is packed twice, and a thread that was interrupted does less.
struct Sharing {
  int64_t chunk_n = 0;  // columns; 0: the product is cut into a grid instead
  int64_t units = 0;
  int64_t unit_m = 0;  // rows of the largest unit
};

Sharing ChooseSharing(const MatmulShape& s, int threads, int64_t words_of_k, const GemmFunctions& gemm, int tile_n) {
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

// Whether tiles are used is a property of the whole product, so that its bits depend on nothing else.
const GemmFunctions& SelectGemm(const GemmTable& table, const MatmulShape& s, [[maybe_unused]] bool may_use_tiles) {
#if defined(BOWLINE_HAVE_X86_VARIANTS)
  if (may_use_tiles && s.operands == DType::kBF16 && ActiveIsa() >= Isa::kAmx && s.m >= kLeastForAmx &&
      s.n >= kLeastForAmx)
    return isa_amx::kGemmBf16;
#endif
  return table.Of(s.operands);
}

class PackedMatmul : public Kernel {
 public:
  PackedMatmul(const MatmulShape& shape, const Signature& signature, bool may_use_tiles)
      : gemm_(BOWLINE_SELECT_BF16_ISA(kGemm)),
        functions_(SelectGemm(gemm_, shape, may_use_tiles)),
        pack_(BOWLINE_SELECT_BF16_ISA(kPackMatrix)),
        epilogue_(signature.epilogue),
        threads_(UsefulThreads(shape, signature.threads)),
        loop_(threads_),
        pack_loop_(threads_),
        operand_bytes_(static_cast<int64_t>(SizeOf(shape.operands))),
        result_bytes_(static_cast<int64_t>(SizeOf(shape.result))) {
    result_ = signature.has_epilogue ? GemmResult::kEpilogue : GemmResultOf(shape.result);
    // Half of a second-level cache of the processors with AMX, which alone streams; measured.
    constexpr int64_t kStreamedBytes = 1 << 20;
    streamed_ = shape.m * shape.n * result_bytes_ >= kStreamedBytes;
    // An epilogue wants rows and columns as they are.
    shape_ = result_ == GemmResult::kEpilogue ? shape : Oriented(shape, &swapped_);
    packed_n_ = shape_.b_packed ? CeilDiv(shape_.n, gemm_.tile_n) * gemm_.tile_n : 0;
    dot_ = shape_.m == 1 && (shape_.a[2] == 1 || shape_.k == 1) && (shape_.b[1] == 1 && shape_.b[2] != 1);
    const bool pairs = shape.operands == DType::kBF16 && pack_.bf16_pairs;
    const int64_t words = pairs ? CeilDiv(shape_.k, kPackedSteps) * kPackedSteps / 2 : shape_.k;
    GemmSums sums =
        result_ == GemmResult::kF32 && (shape_.c[2] == 1 || shape_.n == 1) ? GemmSums::kInC : GemmSums::kInScratch;
    if (WorthFlipping(shape_, shape.operands == DType::kF32 || (pairs && shape_.k % 2 == 0))) {
      const MatmulShape flipped = Transposed(shape_);
      sharing_ = ChooseSharing(flipped, threads_, words, functions_, gemm_.tile_n);
      if (sharing_.chunk_n > 0) {
        shape_ = flipped;
        flipped_ = true;
        swapped_ = !swapped_;
        sums = GemmSums::kFlipped;
      }
    }
    if (!flipped_ && threads_ > 1) sharing_ = ChooseSharing(shape_, threads_, words, functions_, gemm_.tile_n);
    if (sharing_.chunk_n > 0) {
      scratch_bytes_ = sizeof(float) * functions_.scratch_words(sharing_.unit_m, std::min(sharing_.chunk_n, shape_.n),
                                                                shape_.k, sums, /*b_packed=*/true);
      shared_bytes_ = shape_.b_packed ? 0 : sizeof(float) * static_cast<size_t>(sharing_.chunk_n * words);
      return;
    }
    grid_ = ChooseGrid(shape_, threads_, functions_.tile_m, gemm_.tile_n);
    piece_m_ = CeilDiv(CeilDiv(shape_.m, functions_.tile_m), grid_.m_parts) * functions_.tile_m;
    piece_n_ = CeilDiv(CeilDiv(shape_.n, gemm_.tile_n), grid_.n_parts) * gemm_.tile_n;
    // Rounding up to tiles may leave the last parts empty.
    grid_ = {CeilDiv(shape_.m, piece_m_), CeilDiv(shape_.n, piece_n_)};
    scratch_bytes_ =
        sizeof(float) * functions_.scratch_words(std::min(piece_m_, shape_.m), std::min(piece_n_, shape_.n), shape_.k,
                                                 sums, shape_.b_packed);
  }

  size_t ScratchBytes() const override {
    if (sharing_.chunk_n > 0) return shared_bytes_ + scratch_bytes_ * static_cast<size_t>(threads_);
    const int64_t pieces = shape_.batch * grid_.m_parts * grid_.n_parts;
    return scratch_bytes_ * static_cast<size_t>(std::min<int64_t>(threads_, pieces));
  }

  void Run(absl::Span<void* const> arguments, void* scratch) const override {
    const Operands operands = {static_cast<const char*>(arguments[swapped_ ? 1 : 0]),
                               static_cast<const char*>(arguments[swapped_ ? 0 : 1]),
                               result_ == GemmResult::kEpilogue ? nullptr : static_cast<char*>(arguments[2]),
                               arguments.data() + kEpilogueOperands};
    if (sharing_.chunk_n > 0) {
      RunShared(operands, static_cast<char*>(scratch));
    } else {
      RunGrid(operands, static_cast<char*>(scratch));
    }
  }

 private:
  struct Operands {
    const char *a, *b;
    char* c;
    void* const* epilogue;
  };

  GemmShape Piece(int64_t m, int64_t n) const {
    // A single column counts as contiguous: its stride is never used.
    const int64_t b_n = shape_.n == 1 ? 1 : shape_.b[2], c_n = shape_.n == 1 ? 1 : shape_.c[2];
    return {m, n, shape_.k, shape_.a[1], shape_.a[2], shape_.b[1], b_n, shape_.c[1], c_n, shape_.accumulate, dot_};
  }
  GemmOutput Output(const Operands& operands, int64_t batch, int64_t m0, int64_t n0) const {
    const int64_t offset = batch * shape_.c[0] + m0 * shape_.c[1] + n0 * shape_.c[2];
    char* c = operands.c == nullptr ? nullptr : operands.c + offset * result_bytes_;
    return {result_, c, epilogue_, operands.epilogue, m0, n0, flipped_, streamed_};
  }

  void RunGrid(const Operands& operands, char* scratch) const {
    const int64_t pieces = grid_.m_parts * grid_.n_parts;
    loop_.RunMembers(shape_.batch * pieces, [&](int member, int64_t begin, int64_t end) {
      char* own_scratch = scratch + static_cast<size_t>(member) * scratch_bytes_;
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t batch = piece / pieces, m_part = piece % pieces / grid_.n_parts;
        const int64_t m0 = m_part * piece_m_, n0 = piece % grid_.n_parts * piece_n_;
        GemmShape gemm = Piece(std::min(piece_m_, shape_.m - m0), std::min(piece_n_, shape_.n - n0));
        gemm.packed_n = packed_n_;
        gemm.packed_n0 = n0;
        functions_.run(gemm, operands.a + (batch * shape_.a[0] + m0 * shape_.a[1]) * operand_bytes_,
                       operands.b + (batch * shape_.b[0] + n0 * shape_.b[2]) * operand_bytes_,
                       Output(operands, batch, m0, n0), reinterpret_cast<float*>(own_scratch));
      }
    });
  }

  void RunShared(const Operands& operands, char* scratch) const {
    for (int64_t n0 = 0; n0 < shape_.n; n0 += sharing_.chunk_n) {
      const int64_t n = std::min(sharing_.chunk_n, shape_.n - n0);
      const char* b = operands.b;
      if (!shape_.b_packed) {
        PackChunk(operands.b + n0 * shape_.b[2] * operand_bytes_, n, reinterpret_cast<float*>(scratch));
        b = scratch;
      }
      MultiplyRows(operands, b, n0, n, scratch + shared_bytes_);
    }
  }

  void PackChunk(const char* b, int64_t n, float* packed) const {
    constexpr double kNsPerElement = 0.2;
    const PackPanels pack = pack_.Of(shape_.operands);
    const PackShape columns = {shape_.k, n, shape_.b[1], shape_.n == 1 ? 1 : shape_.b[2]};
    pack_loop_.Run(CeilDiv(n, gemm_.tile_n), kNsPerElement * static_cast<double>(shape_.k * gemm_.tile_n),
                   [&](int64_t begin, int64_t end) { pack(columns, b, begin, end, packed); });
  }

  // The first row of a unit of work; of the one after the last: all rows.
  int64_t UnitBegin(int64_t unit) const {
    const int64_t tiles = CeilDiv(shape_.m, functions_.tile_m);
    return std::min(unit * tiles / sharing_.units * functions_.tile_m, shape_.m);
  }

  // Columns [n0, n0 + n) of C, from what was packed of B.
  void MultiplyRows(const Operands& operands, const char* b, int64_t n0, int64_t n, char* scratch) const {
    loop_.RunMembers(sharing_.units, [&](int member, int64_t begin, int64_t end) {
      float* own_scratch = reinterpret_cast<float*>(scratch + static_cast<size_t>(member) * scratch_bytes_);
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t m0 = UnitBegin(unit);
        GemmShape gemm = Piece(UnitBegin(unit + 1) - m0, n);
        gemm.packed_n = CeilDiv(n, gemm_.tile_n) * gemm_.tile_n;
        const int64_t later = unit + 1;  // of the next chunk too: a thread's chunks lie side by side, mostly
        if (later < sharing_.units) {
          gemm.next_m = UnitBegin(later + 1) - UnitBegin(later);
          gemm.next_a = operands.a + UnitBegin(later) * shape_.a[1] * operand_bytes_;
        }
        functions_.run(gemm, operands.a + m0 * shape_.a[1] * operand_bytes_, b, Output(operands, 0, m0, n0),
                       own_scratch);
      }
    });
  }

  const GemmTable& gemm_;
  const GemmFunctions& functions_;
  const PackMatrixTable& pack_;
  const TileEpilogue epilogue_;
  const int threads_;
  const ParallelLoop loop_, pack_loop_;
  const int64_t operand_bytes_, result_bytes_;
  GemmResult result_;
  bool swapped_ = false;  // A and B have changed places
  bool flipped_ = false;  // and C is contiguous in m
  bool streamed_;
  MatmulShape shape_;
  bool dot_;
  int64_t packed_n_;
  Sharing sharing_;
  Grid grid_;
  int64_t piece_m_ = 0, piece_n_ = 0;
  size_t scratch_bytes_;     // of each thread
  size_t shared_bytes_ = 0;  // of a packed chunk
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const MatmulShape shape, ParseMatmul(signature));
  if (shape.b_packed) BOWLINE_KERNEL_RETURN_IF_ERROR(CheckPackedProduct(signature, shape));
  auto kernel = std::make_unique<PackedMatmul>(shape, signature, /*may_use_tiles=*/true);
  if (kernel->ScratchBytes() <= signature.scratch_limit) return kernel;
  return std::make_unique<PackedMatmul>(shape, signature, /*may_use_tiles=*/false);
}

}  // namespace

KernelDefinition MatmulDefinition() {
  return {
      "matmul",
      "C[b,m,n] (+)= sum_k A[b,m,k] B[b,k,n], arguments A, B, C; A and B of one floating-point type, C f32 or, without "
      "accumulate, of that type; sums in f32; ints batch, m, n, k, a_strides [b,m,k], b_strides [b,k,n], c_strides "
      "[b,m,n] in elements, optional accumulate; with an epilogue (batch 1) its extras and outputs take the place of "
      "C; with b_packed (batch 1, m and n at least 2, rows of C contiguous) B is what pack_matrix made of it; same "
      "bits with it and without, and for every number of threads",
      &Create,
      {},
      kEpilogueOperands};
}

}  // namespace bowline::kernels
