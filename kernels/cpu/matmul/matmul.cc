#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/definitions.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/matmul_signature.h"
#include "kernels/cpu/parallel.h"
#include "kernels/registry/signature_check.h"

namespace bowline::kernels {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The kernel writes whole vectors along n, so n should be the contiguous dimension of C: C^T = B^T A^T otherwise.
MatmulShape Oriented(const MatmulShape& s, bool* swapped) {
  // A single column is turned into a single row, which has its own fast paths.
  const bool m_contiguous = s.m > 1 && (s.c[1] == 1 || s.n == 1);
  const bool n_contiguous = s.n > 1 && s.c[2] == 1;
  *swapped = !n_contiguous && m_contiguous;
  if (!*swapped) return s;
  MatmulShape t = s;
  std::swap(t.m, t.n);
  t.a = {s.b[0], s.b[2], s.b[1]};
  t.b = {s.a[0], s.a[2], s.a[1]};
  t.c = {s.c[0], s.c[2], s.c[1]};
  return t;
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

class PackedMatmul : public Kernel {
 public:
  PackedMatmul(const MatmulShape& shape, const Signature& signature)
      : gemm_(BOWLINE_SELECT_BF16_ISA(kGemm)),
        functions_(shape.operands == DType::kBF16 ? gemm_.bf16 : gemm_.f32),
        epilogue_(signature.epilogue),
        threads_(signature.threads) {
    result_ = signature.has_epilogue         ? GemmResult::kEpilogue
              : shape.result == DType::kBF16 ? GemmResult::kBf16
                                             : GemmResult::kF32;
    // An epilogue wants rows and columns as they are.
    shape_ = result_ == GemmResult::kEpilogue ? shape : Oriented(shape, &swapped_);
    grid_ = ChooseGrid(shape_, threads_, gemm_.tile_m, gemm_.tile_n);
    piece_m_ = CeilDiv(CeilDiv(shape_.m, gemm_.tile_m), grid_.m_parts) * gemm_.tile_m;
    piece_n_ = CeilDiv(CeilDiv(shape_.n, gemm_.tile_n), grid_.n_parts) * gemm_.tile_n;
    // Rounding up to tiles may leave the last parts empty.
    grid_ = {CeilDiv(shape_.m, piece_m_), CeilDiv(shape_.n, piece_n_)};
    packed_n_ = shape_.b_packed ? CeilDiv(shape_.n, gemm_.tile_n) * gemm_.tile_n : 0;
    dot_ = shape_.m == 1 && (shape_.a[2] == 1 || shape_.k == 1) && (shape_.b[1] == 1 && shape_.b[2] != 1);
    const bool direct = result_ == GemmResult::kF32 && (shape_.c[2] == 1 || shape_.n == 1);
    scratch_bytes_ =
        sizeof(float) * functions_.scratch_words(std::min(piece_m_, shape_.m), std::min(piece_n_, shape_.n), shape_.k,
                                                 direct, shape_.b_packed);
  }

  size_t ScratchBytes() const override {
    const int64_t pieces = shape_.batch * grid_.m_parts * grid_.n_parts;
    return scratch_bytes_ * static_cast<size_t>(std::min<int64_t>(threads_, pieces));
  }

  void Run(absl::Span<void* const> arguments, void* scratch) const override {
    const char* a = static_cast<const char*>(arguments[swapped_ ? 1 : 0]);
    const char* b = static_cast<const char*>(arguments[swapped_ ? 0 : 1]);
    const bool has_c = result_ != GemmResult::kEpilogue;
    char* c = has_c ? static_cast<char*>(arguments[2]) : nullptr;
    const auto operand_bytes = static_cast<int64_t>(SizeOf(shape_.operands));
    const auto c_bytes = static_cast<int64_t>(SizeOf(shape_.result));
    const int64_t pieces = grid_.m_parts * grid_.n_parts;
    ParallelForChunks(threads_, shape_.batch * pieces, [&](int chunk, int64_t begin, int64_t end) {
      char* own_scratch = static_cast<char*>(scratch) + static_cast<size_t>(chunk) * scratch_bytes_;
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t batch = piece / pieces, m_part = piece % pieces / grid_.n_parts;
        const int64_t m0 = m_part * piece_m_, n0 = piece % grid_.n_parts * piece_n_;
        const GemmShape gemm = {std::min(piece_m_, shape_.m - m0), std::min(piece_n_, shape_.n - n0), shape_.k,
                                shape_.a[1], shape_.a[2], shape_.b[1],
                                // A single column counts as contiguous: its stride is never used.
                                shape_.n == 1 ? 1 : shape_.b[2], shape_.c[1], shape_.n == 1 ? 1 : shape_.c[2],
                                shape_.accumulate, dot_, packed_n_};
        GemmOutput output{result_, nullptr, epilogue_, arguments.data() + kEpilogueOperands, m0, n0};
        if (has_c) output.c = c + (batch * shape_.c[0] + m0 * shape_.c[1] + n0 * shape_.c[2]) * c_bytes;
        functions_.run(gemm, a + (batch * shape_.a[0] + m0 * shape_.a[1]) * operand_bytes,
                       b + (batch * shape_.b[0] + n0 * shape_.b[2]) * operand_bytes, output,
                       reinterpret_cast<float*>(own_scratch));
      }
    });
  }

 private:
  const GemmTable& gemm_;
  const GemmFunctions& functions_;
  const TileEpilogue epilogue_;
  const int threads_;
  GemmResult result_;
  bool swapped_ = false;
  MatmulShape shape_;
  bool dot_;
  int64_t packed_n_;
  Grid grid_;
  int64_t piece_m_, piece_n_;
  size_t scratch_bytes_;  // of each thread
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const MatmulShape shape, ParseMatmul(signature));
  const Attribute* library = signature.Find("library");
  if (library == nullptr || library->text == "bowline") {
    return std::make_unique<PackedMatmul>(shape, signature);
  }
  if (library->text == "onednn" && (signature.has_epilogue || shape.operands != DType::kF32)) {
    return Refuse(signature, signature.has_epilogue ? "library 'onednn' takes no epilogue; use library 'bowline'"
                                                    : "library 'onednn' takes f32 only; use library 'bowline'");
  }
  if (library->text == "onednn") return CreateOneDnnMatmul(signature, shape);
  return Refuse(signature,
                absl::StrCat("attribute 'library' is '", library->text, "'; it must be 'bowline' or 'onednn'"));
}

}  // namespace

KernelDefinition MatmulDefinition() {
  return {
      "matmul",
      "C[b,m,n] (+)= sum_k A[b,m,k] B[b,k,n], arguments A, B, C; A and B f32 or both bf16, C f32 or, of bf16 "
      "without accumulate, bf16; sums in f32; ints batch, m, n, k, a_strides [b,m,k], b_strides [b,k,n], c_strides "
      "[b,m,n] in elements, optional accumulate; optional text library: 'bowline' (default; allocates nothing, same "
      "bits for every number of threads) or 'onednn' (f32); with an epilogue (bowline, batch 1) its extras and "
      "outputs take the place of C; with b_packed (bowline, batch 1, m and n at least 2, rows of C contiguous) B is "
      "what pack_matrix made of it, for the same bits",
      &Create,
      {},
      kEpilogueOperands};
}

}  // namespace bowline::kernels
