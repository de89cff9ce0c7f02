#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/paged/paged_division.h"
#include "kernels/cpu/paged/paged_sequences.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/signatures/paged_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

template <typename Q, typename T>
class PagedAttention : public Kernel {
 public:
  PagedAttention(const PagedAttentionShape& shape, int threads)
      : shape_(shape), threads_(threads), loop_(threads), group_(shape.query_heads / shape.paged.heads) {}

  size_t ScratchBytes() const override { return PagedAttentionScratchBytes(shape_, threads_); }

  void Run(absl::Span<void* const> x, void* scratch) const override {
    const PagedShape& s = shape_.paged;
    const Q* query = static_cast<const Q*>(x[0]);
    const T *keys = static_cast<const T*>(x[1]), *values = static_cast<const T*>(x[2]);
    const PagedIndices indices = {static_cast<const int32_t*>(x[3]), static_cast<const int32_t*>(x[4]),
                                  static_cast<const int32_t*>(x[5])};
    Q* out = static_cast<Q*>(x[6]);
    const int64_t dim = s.head_dim, row = shape_.query_heads * dim;
    std::memset(out, 0, static_cast<size_t>(s.tokens * row) * sizeof(Q));
    loop_.RunMembers(s.tokens, [&](int member, int64_t begin, int64_t end) {
      float* sums = static_cast<float*>(scratch) + member * PagedAttentionScratchFloats(shape_);
      ForEachSequence(indices.rows, indices.lengths, s.sequences, s.tokens, [&](SequenceRows sequence) {
        const int32_t* table = indices.blocks + sequence.sequence * s.table;
        const int64_t first = std::max(begin, sequence.begin), last = std::min(end, sequence.begin + sequence.count);
        for (int64_t t = first; t < last; ++t) {
          const int64_t position =
              std::clamp<int64_t>(sequence.position + t - sequence.begin, 0, s.table * s.block_size - 1);
          for (int64_t h = 0; h < shape_.query_heads; ++h) {
            Attend(query + t * row + h * dim, keys, values, table, position, h / group_, sums, out + t * row + h * dim);
          }
        }
      });
    });
  }

 private:
  void Attend(const Q* query, const T* keys, const T* values, const int32_t* table, int64_t position, int64_t head,
              float* sums, Q* out) const {
    const PagedShape& s = shape_.paged;
    const int64_t dim = s.head_dim;
    float maximum = -std::numeric_limits<float>::infinity(), total = 0;
    std::fill_n(sums, dim, 0.0f);
    for (int64_t j = shape_.window == 0 ? 0 : std::max<int64_t>(0, position - shape_.window + 1); j <= position; ++j) {
      const int64_t block = std::clamp<int64_t>(table[j / s.block_size], 0, s.blocks - 1);
      const int64_t at = ((block * s.block_size + j % s.block_size) * s.heads + head) * dim;
      float score = 0;
      for (int64_t d = 0; d < dim; ++d) score += Widen(query[d]) * Widen(keys[at + d]);
      score *= shape_.scale;
      const float larger = std::fmax(score, maximum), shrink = std::exp(maximum - larger), p = std::exp(score - larger);
      for (int64_t d = 0; d < dim; ++d) sums[d] = sums[d] * shrink + p * Widen(values[at + d]);
      total = total * shrink + p;
      maximum = larger;
    }
    for (int64_t d = 0; d < dim; ++d) out[d] = Narrow<Q>(sums[d] / total);
  }

  const PagedAttentionShape shape_;
  const int threads_;
  const ParallelLoop loop_;
  const int64_t group_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const PagedAttentionShape shape, ParsePagedAttention(signature));
  return VisitFloatType(shape.paged.cache, [&](auto zero) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    if (shape.query == DType::kF32) return std::make_unique<PagedAttention<float, T>>(shape, signature.threads);
    return std::make_unique<PagedAttention<T, T>>(shape, signature.threads);
  });
}

}  // namespace

KernelDefinition PagedAttentionDefinition() {
  return {
      "paged_attention",
      "out[t] = softmax(scale query[t] k^T) v over the positions up to that of row t of its sequence "
      "(sequence_positions), whose keys and values are at [blocks[r, p / S], p % S] of caches [N, S, K, D] of one "
      "floating-point type; query, out [T, H, D] of that type or f32, K dividing H; rows [R+1], lengths [R], blocks "
      "[R, M] i32; zeros for rows of no sequence; float scale; optional int window: the last window positions "
      "alone; summed in f32; same bits for every number of threads",
      &Create};
}

}  // namespace bowline::kernels
