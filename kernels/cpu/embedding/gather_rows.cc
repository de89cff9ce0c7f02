#include <cstring>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/embedding/embedding_shape.h"
#include "kernels/cpu/parallel.h"

namespace bowline::kernels {
namespace {

class GatherRows : public Kernel {
 public:
  GatherRows(const EmbeddingShape& shape, int threads) : shape_(shape), threads_(threads) {}

  void Run(absl::Span<void* const> arguments, void*) const override {
    const float* table = static_cast<const float*>(arguments[0]);
    const int32_t* ids = static_cast<const int32_t*>(arguments[1]);
    float* out = static_cast<float*>(arguments[2]);
    ParallelFor(threads_, shape_.tokens, [&](int64_t begin, int64_t end) {
      for (int64_t token = begin; token < end; ++token) {
        std::memcpy(out + token * shape_.columns, table + int64_t{ids[token]} * shape_.columns,
                    static_cast<size_t>(shape_.columns) * sizeof(float));
      }
    });
  }

 private:
  EmbeddingShape shape_;
  int threads_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature,
                                                {{"table", Access::kRead, DType::kF32},
                                                 {"ids", Access::kRead, DType::kI32},
                                                 {"out", Access::kWrite, DType::kF32}},
                                                {}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const EmbeddingShape shape, ParseEmbedding(signature, 0, 1, 2, "out"));
  return std::make_unique<GatherRows>(shape, signature.threads);
}

}  // namespace

KernelDefinition GatherRowsDefinition() {
  return {"gather_rows", "out[n..., :] = table[ids[n...], :]; table [V, D...] f32, ids [N...] i32, out [N..., D...]",
          &Create};
}

}  // namespace bowline::kernels
