#include <algorithm>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/matmul_division.h"
#include "kernels/cpu/matmul/packed_matrix.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/signatures/matmul_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

const GemmFunctions& SelectGemm(const GemmTable& table, const MatmulShape& s, [[maybe_unused]] bool may_use_amx) {
#if defined(BOWLINE_HAVE_X86_VARIANTS)
  if (may_use_amx && IsForAmx(s, ActiveIsa())) {
    return s.operands == DType::kBF16 ? isa_amx::kGemmBf16 : isa_amx::kGemmF32;
  }
#endif
  return table.Of(s.operands);
}

class PackedMatmul : public Kernel {
 public:
  PackedMatmul(const MatmulShape& shape, const Signature& signature, bool may_use_amx)
      : gemm_(BOWLINE_SELECT_BF16_ISA(kGemm)),
        functions_(SelectGemm(gemm_, shape, may_use_amx)),
        pack_(BOWLINE_SELECT_BF16_ISA(kPackMatrix)),
        epilogue_(signature.epilogue),
        division_(DivideMatmul(shape, signature.has_epilogue, signature.threads,
                               {gemm_.tile_n, pack_.bf16_pairs, gemm_.f32.tiles, gemm_.bf16.tiles, gemm_.f16.tiles},
                               functions_.tiles)),
        shape_(division_.shape),
        sharing_(division_.sharing),
        loop_(division_.threads),
        pack_loop_(division_.threads),
        operand_bytes_(static_cast<int64_t>(SizeOf(shape.operands))),
        result_bytes_(static_cast<int64_t>(SizeOf(shape.result))) {
    result_ = signature.has_epilogue ? GemmResult::kEpilogue : GemmResultOf(shape.result);
    // Half of a second-level cache of the processors with AMX, which alone streams; measured.
    constexpr int64_t kStreamedBytes = 1 << 20;
    streamed_ = shape.m * shape.n * result_bytes_ >= kStreamedBytes;
    packed_n_ = shape_.b_packed ? CeilDiv(shape_.n, gemm_.tile_n) * gemm_.tile_n : 0;
  }

  size_t ScratchBytes() const override { return division_.ScratchBytes(); }

  void Run(absl::Span<void* const> arguments, void* scratch) const override {
    const Operands operands = {static_cast<const char*>(arguments[division_.swapped ? 1 : 0]),
                               static_cast<const char*>(arguments[division_.swapped ? 0 : 1]),
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
    return {m,   n,           shape_.k, shape_.a[1],       shape_.a[2],  shape_.b[1],
            b_n, shape_.c[1], c_n,      shape_.accumulate, division_.dot};
  }
  GemmOutput Output(const Operands& operands, int64_t batch, int64_t m0, int64_t n0) const {
    const int64_t offset = batch * shape_.c[0] + m0 * shape_.c[1] + n0 * shape_.c[2];
    char* c = operands.c == nullptr ? nullptr : operands.c + offset * result_bytes_;
    return {result_, c, epilogue_, operands.epilogue, m0, n0, division_.flipped, streamed_};
  }

  void RunGrid(const Operands& operands, char* scratch) const {
    const int64_t pieces = division_.grid.m_parts * division_.grid.n_parts;
    loop_.RunMembers(shape_.batch * pieces, [&](int member, int64_t begin, int64_t end) {
      char* own_scratch = scratch + static_cast<size_t>(member) * division_.scratch_bytes;
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t batch = piece / pieces, m_part = piece % pieces / division_.grid.n_parts;
        const int64_t m0 = m_part * division_.piece_m, n0 = piece % division_.grid.n_parts * division_.piece_n;
        GemmShape gemm = Piece(std::min(division_.piece_m, shape_.m - m0), std::min(division_.piece_n, shape_.n - n0));
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
      MultiplyRows(operands, b, n0, n, scratch + division_.shared_bytes);
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
    const int64_t tiles = CeilDiv(shape_.m, functions_.tiles.tile_m);
    return std::min(unit * tiles / sharing_.units * functions_.tiles.tile_m, shape_.m);
  }

  // Columns [n0, n0 + n) of C, from the packed part of B.
  void MultiplyRows(const Operands& operands, const char* b, int64_t n0, int64_t n, char* scratch) const {
    loop_.RunMembers(sharing_.units, [&](int member, int64_t begin, int64_t end) {
      float* own_scratch = reinterpret_cast<float*>(scratch + static_cast<size_t>(member) * division_.scratch_bytes);
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t m0 = UnitBegin(unit);
        GemmShape gemm = Piece(UnitBegin(unit + 1) - m0, n);
        gemm.packed_n = CeilDiv(n, gemm_.tile_n) * gemm_.tile_n;
        const int64_t later = unit + 1;  // may be in the next chunk: a thread's chunks lie side by side, mostly
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
  const MatmulDivision division_;
  const MatmulShape& shape_;
  const MatmulSharing& sharing_;
  const ParallelLoop loop_, pack_loop_;
  const int64_t operand_bytes_, result_bytes_;
  GemmResult result_;
  bool streamed_;
  int64_t packed_n_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const MatmulShape shape, ParseMatmul(signature));
  if (shape.b_packed) BOWLINE_KERNEL_RETURN_IF_ERROR(CheckPackedProduct(signature, shape, ActiveIsa()));
  auto kernel = std::make_unique<PackedMatmul>(shape, signature, /*may_use_amx=*/true);
  if (kernel->ScratchBytes() <= signature.scratch_limit) return kernel;
  return std::make_unique<PackedMatmul>(shape, signature, /*may_use_amx=*/false);
}

}  // namespace

KernelDefinition MatmulDefinition() {
  return {
      "matmul",
      "C[b,m,n] (+)= sum_k A[b,m,k] B[b,k,n], arguments A, B, C; A and B of one floating-point type, C f32 or, without "
      "accumulate, of that type; sums in f32; ints batch, m, n, k, a_strides [b,m,k], b_strides [b,k,n], c_strides "
      "[b,m,n] in elements, optional accumulate, and bf16x6: f32 may be multiplied by six products of bf16; with an "
      "epilogue (batch 1) its extras and outputs take the place of "
      "C; with b_packed (batch 1, m and n at least 2, rows of C contiguous) B is the result of pack_matrix; same "
      "bits with it and without, and for every number of threads",
      &Create,
      {},
      kEpilogueOperands};
}

}  // namespace bowline::kernels
