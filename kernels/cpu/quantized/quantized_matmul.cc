#include <algorithm>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/cpu/quantized/quantized.h"
#include "kernels/cpu/quantized/quantized_division.h"
#include "kernels/signatures/quantized_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

// A piece of work is a strip of rows of the weights, with all rows of x.
class QuantizedMatmul : public Kernel {
 public:
  QuantizedMatmul(const QuantizedMatmulShape& shape, int threads)
      : shape_(shape),
        table_(BOWLINE_SELECT_ISA(kQuantized)),
        division_(DivideQuantizedMatmul(shape, GemmLevelOf(ActiveIsa()))),
        gemm_(BOWLINE_SELECT_BF16_ISA(kGemm).Of(division_.operands)),
        threads_(threads),
        loop_(threads) {}

  size_t ScratchBytes() const override { return division_.ScratchBytes(threads_); }

  void Run(absl::Span<void* const> arguments, void* scratch) const override {
    const QuantizedMatrix& weights = shape_.weights;
    const void* x = arguments[0];
    if (division_.x_bytes > 0) {
      table_.widen(static_cast<const uint16_t*>(x), shape_.m * weights.columns, static_cast<float*>(scratch));
      x = scratch;
    }
    const uint8_t* blocks = static_cast<const uint8_t*>(arguments[1]);
    char* out = static_cast<char*>(arguments[2]);
    const int64_t strips = (weights.rows + division_.strip - 1) / division_.strip;
    if (division_.few) {
      // About 10 bytes a nanosecond.
      const double nanoseconds = 0.1 * static_cast<double>(division_.strip * weights.row_bytes);
      loop_.Run(strips, nanoseconds, [&](int64_t begin, int64_t end) {
        table_.few(shape_, static_cast<const float*>(x), blocks, begin * division_.strip,
                   std::min(end * division_.strip, weights.rows), out);
      });
      return;
    }
    char* own = static_cast<char*>(scratch) + division_.x_bytes;
    loop_.RunMembers(strips, [&](int member, int64_t begin, int64_t end) {
      for (int64_t strip = begin; strip < end; ++strip) {
        MultiplyStrip(x, blocks, strip * division_.strip, out,
                      own + static_cast<size_t>(member) * division_.thread_bytes);
      }
    });
  }

 private:
  void MultiplyStrip(const void* x, const uint8_t* blocks, int64_t begin, char* out, char* scratch) const {
    const QuantizedMatrix& weights = shape_.weights;
    const int64_t rows = std::min(division_.strip, weights.rows - begin), k = weights.columns;
    table_.decode(weights.format, blocks + begin * weights.row_bytes,
                  rows * (k / InfoOf(weights.format).block_elements), division_.operands, scratch);
    const GemmShape piece = {shape_.m, rows, k, k, 1, 1, k, weights.rows, 1, /*accumulate=*/false};
    gemm_.run(piece, x, scratch, {GemmResultOf(shape_.out), out + begin * static_cast<int64_t>(SizeOf(shape_.out))},
              reinterpret_cast<float*>(scratch + division_.weights_bytes));
  }

  const QuantizedMatmulShape shape_;
  const QuantizedTable& table_;
  const QuantizedDivision division_;
  const GemmFunctions& gemm_;
  const int threads_;
  const ParallelLoop loop_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const QuantizedMatmulShape shape, ParseQuantizedMatmul(signature));
  return std::make_unique<QuantizedMatmul>(shape, signature.threads);
}

}  // namespace

KernelDefinition QuantizedMatmulDefinition() {
  return {
      "quantized_matmul",
      "out[m, n] = sum_k x[m, k] weights[n, k]; x [M, K] f32 or bf16, weights u8 [N, K in blocks, bytes of a block], "
      "out [M, N] f32 or of the type of x; text format: q8_0, q4_0, q4_1, q4_k, q6_k; sums in f32; same bits for "
      "every number of threads",
      &Create};
}

}  // namespace bowline::kernels
