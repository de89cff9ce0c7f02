#include <cstring>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/grouped/grouped_division.h"
#include "kernels/cpu/grouped/grouped_shape.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/signatures/grouped_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A piece of work is a block of a group's rows and a strip of its matrix's columns. How work is divided changes no bit
// of the result (gemm.h).
class GroupedMatmul : public Kernel {
 public:
  GroupedMatmul(const GroupedMatmulShape& shape, int threads)
      : shape_(shape),
        threads_(threads),
        loop_(threads),
        gemm_(BOWLINE_SELECT_BF16_ISA(kGemm)),
        functions_(gemm_.Of(shape.operands)),
        pieces_(DivideGroupedMatmul(shape, gemm_.tile_n, functions_.tiles)),
        operand_bytes_(static_cast<int64_t>(SizeOf(shape.operands))),
        result_bytes_(static_cast<int64_t>(SizeOf(shape.result))) {}

  size_t ScratchBytes() const override { return pieces_.scratch_bytes * static_cast<size_t>(threads_); }

  void Run(absl::Span<void* const> arguments, void* scratch) const override {
    const Operands operands = {static_cast<const char*>(arguments[0]), static_cast<const char*>(arguments[1]),
                               static_cast<const int32_t*>(arguments[2]), static_cast<char*>(arguments[3])};
    int64_t blocks = 0, first = shape_.rows, last = shape_.rows;
    ForEachGroup(operands.offsets, shape_.groups, shape_.rows, [&](RowGroup group) {
      if (group.group == 0) first = group.begin;
      last = group.begin + group.count;
      blocks += CeilDiv(group.count, pieces_.block);
    });
    // Rows of no group stand before the first and behind the last.
    const size_t row_bytes = static_cast<size_t>(shape_.n * result_bytes_);
    std::memset(operands.result, 0, static_cast<size_t>(first) * row_bytes);
    if (!shape_.leaves_rows_out) {
      std::memset(operands.result + static_cast<size_t>(last) * row_bytes, 0,
                  static_cast<size_t>(shape_.rows - last) * row_bytes);
    }
    const int64_t strips = CeilDiv(shape_.n, pieces_.strip);
    loop_.RunMembers(blocks * strips, [&](int member, int64_t begin, int64_t end) {
      float* own_scratch =
          reinterpret_cast<float*>(static_cast<char*>(scratch) + static_cast<size_t>(member) * pieces_.scratch_bytes);
      int64_t at = 0;  // number of the group's first piece
      ForEachGroup(operands.offsets, shape_.groups, shape_.rows, [&](RowGroup group) {
        const int64_t count = CeilDiv(group.count, pieces_.block) * strips;
        for (int64_t piece = std::max(begin, at); piece < std::min(end, at + count); ++piece) {
          Multiply(operands, group, (piece - at) / strips * pieces_.block, (piece - at) % strips * pieces_.strip,
                   own_scratch);
        }
        at += count;
      });
    });
  }

 private:
  struct Operands {
    const char *rows, *matrices;
    const int32_t* offsets;
    char* result;
  };

  void Multiply(const Operands& operands, const RowGroup& group, int64_t row, int64_t column, float* scratch) const {
    const int64_t m = std::min(pieces_.block, group.count - row), n = std::min(pieces_.strip, shape_.n - column);
    const int64_t b_k = shape_.transposed ? 1 : shape_.n, b_n = shape_.transposed ? shape_.k : 1;
    const GemmShape piece = {m, n, shape_.k, shape_.k, 1, b_k, b_n, shape_.n, 1, /*accumulate=*/false};
    const GemmResult kind = GemmResultOf(shape_.result);
    const int64_t first = group.begin + row;
    functions_.run(piece, operands.rows + first * shape_.k * operand_bytes_,
                   operands.matrices + (group.group * shape_.k * shape_.n + column * b_n) * operand_bytes_,
                   {kind, operands.result + (first * shape_.n + column) * result_bytes_}, scratch);
  }

  const GroupedMatmulShape shape_;
  const int threads_;
  const ParallelLoop loop_;
  const GemmTable& gemm_;
  const GemmFunctions& functions_;
  const GroupedMatmulPieces pieces_;
  const int64_t operand_bytes_, result_bytes_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const GroupedMatmulShape shape, ParseGroupedMatmul(signature));
  return std::make_unique<GroupedMatmul>(shape, signature.threads);
}

}  // namespace

KernelDefinition GroupedMatmulDefinition() {
  return {
      "grouped_matmul",
      "out[r] = rows[r] matrices[g] for offsets[g] <= r < offsets[g+1], zeros elsewhere; rows [N, K] and matrices "
      "[G, K, M], with 'transposed' [G, M, K], of one floating-point type; offsets i32, at most G + 1; out [N, M] "
      "f32 or "
      "of that type; sums in f32; int transposed; int leaves_rows_out: rows behind the last offset are not written; "
      "offsets that do not ascend within the rows count as the nearest that do",
      &Create};
}

}  // namespace bowline::kernels
