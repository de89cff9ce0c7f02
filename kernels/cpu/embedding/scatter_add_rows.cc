#include <cstring>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/embedding/embedding_shape.h"
#include "kernels/cpu/parallel.h"

namespace bowline::kernels {
namespace {

// Every thread adds all tokens, in order, into outputs that it alone owns, so that the sum in each element has one
// order whatever the number of threads. Owning columns balances the work however skewed the ids are; owning rows serves
// tables whose rows are too short to share.
class ScatterAddRows : public Kernel {
 public:
  ScatterAddRows(const EmbeddingShape& shape, int threads)
      : shape_(shape), threads_(threads), by_columns_(shape.columns >= int64_t{kLine} * threads) {}

  void Run(absl::Span<void* const> arguments, void*) const override {
    const float* updates = static_cast<const float*>(arguments[0]);
    const int32_t* ids = static_cast<const int32_t*>(arguments[1]);
    float* out = static_cast<float*>(arguments[2]);
    if (by_columns_) {
      const int64_t lines = (shape_.columns + kLine - 1) / kLine;
      ParallelFor(threads_, lines, [&](int64_t begin, int64_t end) {
        Add(updates, ids, out, 0, shape_.rows, begin * kLine, end == lines ? shape_.columns : end * kLine);
      });
    } else {
      ParallelFor(threads_, shape_.rows,
                  [&](int64_t begin, int64_t end) { Add(updates, ids, out, begin, end, 0, shape_.columns); });
    }
  }

 private:
  static constexpr int kLine = 16;  // floats in a cache line: threads do not write the same one

  void Add(const float* updates, const int32_t* ids, float* out, int64_t first_row, int64_t last_row,
           int64_t first_column, int64_t last_column) const {
    const int64_t width = last_column - first_column;
    for (int64_t row = first_row; row < last_row; ++row) {
      std::memset(out + row * shape_.columns + first_column, 0, static_cast<size_t>(width) * sizeof(float));
    }
    for (int64_t token = 0; token < shape_.tokens; ++token) {
      if (ids[token] < first_row || ids[token] >= last_row) continue;
      float* __restrict to = out + int64_t{ids[token]} * shape_.columns + first_column;
      const float* __restrict from = updates + token * shape_.columns + first_column;
      for (int64_t i = 0; i < width; ++i) to[i] += from[i];
    }
  }

  EmbeddingShape shape_;
  int threads_;
  bool by_columns_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature,
                                                {{"updates", Access::kRead, DType::kF32},
                                                 {"ids", Access::kRead, DType::kI32},
                                                 {"out", Access::kWrite, DType::kF32}},
                                                {}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const EmbeddingShape shape, ParseEmbedding(signature, 2, 1, 0, "updates"));
  return std::make_unique<ScatterAddRows>(shape, signature.threads);
}

}  // namespace

KernelDefinition ScatterAddRowsDefinition() {
  return {"scatter_add_rows",
          "out[v, :] = sum over n with ids[n...] == v, in order of n, of updates[n..., :]; updates [N..., D...] f32, "
          "ids [N...] i32, out [V, D...]; same bits for every number of threads",
          &Create};
}

}  // namespace bowline::kernels
