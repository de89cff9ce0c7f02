#include <algorithm>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/cpu/quantized/quantized.h"
#include "kernels/signatures/quantized_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

class QuantizedGather : public Kernel {
 public:
  QuantizedGather(const QuantizedGatherShape& shape, int threads)
      : shape_(shape),
        table_(BOWLINE_SELECT_ISA(kQuantized)),
        blocks_(shape.table.columns / InfoOf(shape.table.format).block_elements),
        loop_(threads) {}

  void Run(absl::Span<void* const> arguments, void*) const override {
    const uint8_t* rows = static_cast<const uint8_t*>(arguments[0]);
    const int32_t* ids = static_cast<const int32_t*>(arguments[1]);
    char* out = static_cast<char*>(arguments[2]);
    const QuantizedMatrix& matrix = shape_.table;
    const int64_t out_bytes = matrix.columns * static_cast<int64_t>(SizeOf(shape_.out));
    loop_.Run(shape_.tokens, 0.25 * static_cast<double>(out_bytes), [&](int64_t begin, int64_t end) {
      for (int64_t token = begin; token < end; ++token) {
        const int64_t row = std::clamp<int64_t>(ids[token], 0, matrix.rows - 1);
        table_.decode(matrix.format, rows + row * matrix.row_bytes, blocks_, shape_.out, out + token * out_bytes);
      }
    });
  }

 private:
  const QuantizedGatherShape shape_;
  const QuantizedTable& table_;
  const int64_t blocks_;  // of a row
  const ParallelLoop loop_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const QuantizedGatherShape shape, ParseQuantizedGather(signature));
  return std::make_unique<QuantizedGather>(shape, signature.threads);
}

}  // namespace

KernelDefinition QuantizedGatherDefinition() {
  return {"quantized_gather",
          "out[t..., :] = table[ids[t...], :], decoded, the nearest row where there is none; table u8 [V, K in blocks, "
          "bytes of a block], ids [T...] i32, out [T..., K] f32 or bf16; text format: q8_0, q4_0, q4_1, q4_k, q6_k",
          &Create};
}

}  // namespace bowline::kernels
