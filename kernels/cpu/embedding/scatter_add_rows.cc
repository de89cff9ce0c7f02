#include <algorithm>
#include <cstring>

#include "kernels/cpu/bf16.h"
#include "kernels/cpu/definitions.h"
#include "kernels/cpu/embedding/embedding_shape.h"
#include "kernels/cpu/float_type.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/stream.h"

namespace bowline::kernels {
namespace {

// Tokens are first chained by row, so that each element of the result is summed in registers, in the order of tokens
// whatever the number of threads, and written once. Work is cut by blocks of columns before rows: a row that many
// tokens share is then spread over threads.
template <typename Update, typename Result>
class ScatterAddRows : public Kernel {
 public:
  ScatterAddRows(const EmbeddingShape& shape, int threads)
      : shape_(shape),
        streams_(shape.rows * shape.columns * sizeof(Result) >= kStreamBytes &&
                 shape.columns * sizeof(Result) % sizeof(StreamVec) == 0),
        threads_(threads) {}

  size_t ScratchBytes() const override { return static_cast<size_t>(shape_.rows + shape_.tokens) * sizeof(int32_t); }

  void Run(absl::Span<void* const> arguments, void* scratch) const override {
    const Update* updates = static_cast<const Update*>(arguments[0]);
    const int32_t* ids = static_cast<const int32_t*>(arguments[1]);
    Result* out = static_cast<Result*>(arguments[2]);
    int32_t* first = static_cast<int32_t*>(scratch);  // token of each row, or -1
    int32_t* next = first + shape_.rows;              // token of the same row, or -1
    std::memset(first, 0xFF, static_cast<size_t>(shape_.rows) * sizeof(int32_t));
    for (int64_t token = shape_.tokens - 1; token >= 0; --token) {
      next[token] = first[ids[token]];
      first[ids[token]] = static_cast<int32_t>(token);
    }
    const int64_t blocks = (shape_.columns + kBlock - 1) / kBlock;
    const bool streams = streams_ && CanStream(out);
    ParallelFor(threads_, blocks * shape_.rows, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t row = unit % shape_.rows, column = unit / shape_.rows * kBlock;
        Sum(first[row], next, updates + column, std::min(kBlock, shape_.columns - column),
            out + row * shape_.columns + column, streams);
      }
      if (streams) FinishStreaming();
    });
  }

 private:
  static constexpr int64_t kBlock = 256;  // columns
  static constexpr int64_t kGroup = 64;   // of which so many are summed at a time

  void Sum(int32_t token, const int32_t* next, const Update* updates, int64_t width, Result* out, bool streams) const {
    for (int64_t column = 0; column < width; column += kGroup) {
      alignas(sizeof(StreamVec)) Result sums[kGroup];
      const int64_t count = std::min(kGroup, width - column);
      if (count == kGroup) {
        SumGroup(token, next, updates + column, [] { return kGroup; }, sums);
      } else {
        SumGroup(token, next, updates + column, [count] { return count; }, sums);
      }
      Write(sums, count, out + column, streams);
    }
  }

  template <typename Count>  // a constant, where it can be one
  void SumGroup(int32_t token, const int32_t* next, const Update* updates, Count count, Result* out) const {
    float sums[kGroup] = {};
    for (; token >= 0; token = next[token]) {
      const Update* from = updates + token * shape_.columns;
      for (int64_t i = 0; i < count(); ++i) sums[i] += Widen(from[i]);
    }
    for (int64_t i = 0; i < count(); ++i) out[i] = Narrow<Result>(sums[i]);
  }

  static void Write(const Result* sums, int64_t count, Result* out, bool streams) {
    constexpr int64_t kPerVector = sizeof(StreamVec) / sizeof(Result);
    if (!streams) {
      std::memcpy(out, sums, static_cast<size_t>(count) * sizeof(Result));
      return;
    }
    for (int64_t i = 0; i < count; i += kPerVector) {
      StreamVec vector;
      std::memcpy(&vector, sums + i, sizeof(vector));
      Stream(out + i, vector);
    }
  }

  EmbeddingShape shape_;
  bool streams_;
  int threads_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  const DType update = FloatTypeOf(signature, 0);
  const DType result = update == DType::kBF16 ? FloatTypeOf(signature, 2) : DType::kF32;
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(
      signature,
      {{"updates", Access::kRead, update}, {"ids", Access::kRead, DType::kI32}, {"out", Access::kWrite, result}}, {}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const EmbeddingShape shape, ParseEmbedding(signature, 2, 1, 0, "updates"));
  if (shape.tokens > INT32_MAX) return Refuse(signature, "'ids' has more than 2^31 - 1 elements");
  if (update == DType::kF32) return std::make_unique<ScatterAddRows<float, float>>(shape, signature.threads);
  if (result == DType::kF32) return std::make_unique<ScatterAddRows<Bf16, float>>(shape, signature.threads);
  return std::make_unique<ScatterAddRows<Bf16, Bf16>>(shape, signature.threads);
}

}  // namespace

KernelDefinition ScatterAddRowsDefinition() {
  return {"scatter_add_rows",
          "out[v, :] = sum in f32 over n with ids[n...] == v, in order of n, of updates[n..., :]; updates [N..., D...] "
          "f32 or bf16, ids [N...] i32, out [V, D...] f32, or bf16 if updates are; same bits for every number of "
          "threads",
          &Create};
}

}  // namespace bowline::kernels
