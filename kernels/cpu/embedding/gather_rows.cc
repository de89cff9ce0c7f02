#include <cstring>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/signatures/embedding_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

class GatherRows : public Kernel {
 public:
  GatherRows(const EmbeddingShape& shape, size_t element_bytes, int threads)
      : shape_(shape), row_bytes_(static_cast<size_t>(shape.columns) * element_bytes), loop_(threads) {}

  void Run(absl::Span<void* const> arguments, void*) const override {
    const char* table = static_cast<const char*>(arguments[0]);
    const int32_t* ids = static_cast<const int32_t*>(arguments[1]);
    char* out = static_cast<char*>(arguments[OutOf(shape_)]);
    const int64_t tokens = ValidTokens(shape_, static_cast<const int32_t*>(arguments[2]));
    loop_.Run(tokens, 0.1 * static_cast<double>(row_bytes_), [&](int64_t begin, int64_t end) {
      for (int64_t token = begin; token < end; ++token) {
        const auto row = static_cast<size_t>(RowOf(shape_, ids[token]));
        std::memcpy(out + static_cast<size_t>(token) * row_bytes_, table + row * row_bytes_, row_bytes_);
      }
    });
  }

 private:
  const EmbeddingShape shape_;
  size_t row_bytes_;
  ParallelLoop loop_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const EmbeddingShape shape, ParseGatherRows(signature));
  return std::make_unique<GatherRows>(shape, SizeOf(shape.table), signature.threads);
}

}  // namespace

KernelDefinition GatherRowsDefinition() {
  return {
      "gather_rows",
      "out[n..., :] = table[ids[n...], :], the nearest row where there is none; table [V, D...] and out [N..., "
      "D...] of one floating-point type or i32, ids [N...] i32; int leaves_rows_out, for a count [C] i32 in front of "
      "out, of whose last element many rows, the first dimension of ids, are gathered: the others are not touched",
      &Create};
}

}  // namespace bowline::kernels
