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

// A piece of work is a strip of rows of one group's matrix.
class GroupedOuter : public Kernel {
 public:
  GroupedOuter(const GroupedOuterShape& shape, int threads)
      : shape_(shape),
        threads_(threads),
        loop_(threads),
        gemm_(BOWLINE_SELECT_BF16_ISA(kGemm)),
        functions_(gemm_.Of(shape.operands)),
        pieces_(DivideGroupedOuter(shape, functions_.tiles)),
        operand_bytes_(static_cast<int64_t>(SizeOf(shape.operands))),
        result_bytes_(static_cast<int64_t>(SizeOf(shape.result))) {}

  size_t ScratchBytes() const override { return pieces_.scratch_bytes * static_cast<size_t>(threads_); }

  void Run(absl::Span<void* const> arguments, void* scratch) const override {
    const int32_t* offsets = static_cast<const int32_t*>(arguments[2]);
    const int64_t strips = CeilDiv(shape_.m, pieces_.strip);
    const int64_t matrix_bytes = shape_.m * shape_.n * result_bytes_;
    char* result = static_cast<char*>(arguments[3]);
    std::memset(result + shape_.groups * matrix_bytes, 0,
                static_cast<size_t>((shape_.matrices - shape_.groups) * matrix_bytes));
    loop_.RunMembers(shape_.groups * strips, [&](int member, int64_t begin, int64_t end) {
      float* own_scratch =
          reinterpret_cast<float*>(static_cast<char*>(scratch) + static_cast<size_t>(member) * pieces_.scratch_bytes);
      ForEachGroup(offsets, shape_.groups, shape_.rows, [&](RowGroup group) {
        const int64_t first = group.group * strips;
        for (int64_t piece = std::max(begin, first); piece < std::min(end, first + strips); ++piece) {
          Multiply(static_cast<const char*>(arguments[0]), static_cast<const char*>(arguments[1]),
                   result + group.group * matrix_bytes, group, (piece - first) * pieces_.strip, own_scratch);
        }
      });
    });
  }

 private:
  void Multiply(const char* lhs, const char* rhs, char* matrix, const RowGroup& group, int64_t row,
                float* scratch) const {
    const int64_t m = std::min(pieces_.strip, shape_.m - row);
    char* out = matrix + row * shape_.n * result_bytes_;
    if (group.count == 0) {
      std::memset(out, 0, static_cast<size_t>(m * shape_.n * result_bytes_));
      return;
    }
    const GemmShape piece = {m, shape_.n, group.count, 1, shape_.m, shape_.n, 1, shape_.n, 1, /*accumulate=*/false};
    const GemmResult kind = GemmResultOf(shape_.result);
    functions_.run(piece, lhs + (group.begin * shape_.m + row) * operand_bytes_,
                   rhs + group.begin * shape_.n * operand_bytes_, {kind, out}, scratch);
  }

  const GroupedOuterShape shape_;
  const int threads_;
  const ParallelLoop loop_;
  const GemmTable& gemm_;
  const GemmFunctions& functions_;
  const GroupedOuterPieces pieces_;
  const int64_t operand_bytes_, result_bytes_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const GroupedOuterShape shape, ParseGroupedOuter(signature));
  return std::make_unique<GroupedOuter>(shape, signature.threads);
}

}  // namespace

KernelDefinition GroupedOuterDefinition() {
  return {"grouped_outer",
          "out[g] = sum of lhs[r]^T rhs[r] over offsets[g] <= r < offsets[g+1]; lhs [N, K] and rhs [N, M] of one "
          "floating-point type, offsets i32, at most G + 1, out [G, K, M] f32 or of that type, zeros for groups that "
          "offsets "
          "lacks; sums in f32; offsets that do not ascend within the rows count as the nearest that do",
          &Create};
}

}  // namespace bowline::kernels
