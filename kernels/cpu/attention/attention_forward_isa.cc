#include "kernels/cpu/attention/attention_softmax.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

template <typename T>
using Scratch = AttentionForwardMemory<WordsOf<T>>;
constexpr int64_t kBlockK = Scratch<float>::kBlockK;

// One head of one batch entry, from its first query and key.
template <typename T>
struct Head {
  const T *q, *k, *v;
  T* out;
  float* lse;
};

template <typename T>
void AttendBlock(const AttentionShape& shape, const Scratch<T>& s, const Head<T>& head, int64_t q0) {
  const int64_t dim = shape.head_dim, q_stride = shape.heads * dim, kv_stride = shape.kv_heads * dim;
  const int64_t count = Smaller(shape.queries - q0, kBlockQ);
  const int64_t words = CeilDiv(dim, kStepsOf<T>);
  const float scale = shape.scale * kLog2E;
  PackStrips(count, dim, head.q + q0 * q_stride, q_stride, scale, s.q);
  __builtin_memset(s.out, 0, static_cast<size_t>(kBlockQ * dim) * sizeof(float));
  for (int64_t i = 0; i < kBlockQ; ++i) {
    s.maximum[i] = -__builtin_inff();
    s.sum[i] = 0.0f;
  }

  const int64_t limit = VisibleKeys(shape, q0 + count - 1);
  // Every query sees a key of the first block, so that its maximum is a number from there on.
  static_assert(kBlockQ <= kBlockK);
  for (int64_t k0 = FirstKey(shape, q0); k0 < limit; k0 += kBlockK) {
    const int64_t keys = Smaller(limit - k0, kBlockK);
    const T *block_k = head.k + k0 * kv_stride, *block_v = head.v + k0 * kv_stride;
    const Matrix k = RowsAlong(keys, dim, block_k, kv_stride, s.k);
    const Matrix v = RowsAcross(keys, dim, block_v, kv_stride, s.v);
    for (int64_t i = 0; i < count; i += kStrip) {
      const StripMask mask(shape, q0 + i, Smaller(count - i, kStrip), k0, keys);
      Scores<T>(mask, words, k, s.q + i * words, s.scores);
      for (int n = 0; n < 2; ++n) {
        if (mask.seen[n] <= mask.from) continue;
        UpdateSoftmax<T>(mask.from, mask.seen[n], dim, scale, s.scores + n * kLanes, s.out + i * dim + n * kLanes,
                         s.maximum + i + n * kLanes, s.sum + i + n * kLanes);
      }
      AddWeightedRows<OperandOf<T>>(mask, dim, v, s.scores, kStrip, s.out + i * dim);
    }
  }

  for (int64_t i = 0; i < count; i += kStrip) {
    const Vec inverse[2] = {1.0f / Load(s.sum + i), 1.0f / Load(s.sum + i + kLanes)};
    UnpackStrip(Smaller(count - i, kStrip), dim, s.out + i * dim, inverse, head.out + (q0 + i) * q_stride, q_stride);
  }
  for (int64_t i = 0; i < count; ++i) head.lse[q0 + i] = s.maximum[i] * kLn2 + __builtin_logf(s.sum[i]);
}

template <typename T>
void RunUnits(const AttentionShape& shape, const AttentionForwardArguments& x, int64_t begin, int64_t end,
              float* base) {
  const Scratch<T> s(shape, base);
  const int64_t blocks = CeilDiv(shape.queries, kBlockQ), group = shape.heads / shape.kv_heads;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t index = unit / blocks, batch = index / shape.heads, head = index % shape.heads;
    const int64_t q = (batch * shape.queries * shape.heads + head) * shape.head_dim;
    const int64_t kv = (batch * shape.keys * shape.kv_heads + head / group) * shape.head_dim;
    AttendBlock<T>(shape, s,
                   {static_cast<const T*>(x.q) + q, static_cast<const T*>(x.k) + kv, static_cast<const T*>(x.v) + kv,
                    static_cast<T*>(x.out) + q, x.lse + index * shape.queries},
                   FromBothEnds(unit % blocks, blocks) * kBlockQ);
  }
}

void Run(const AttentionShape& shape, const AttentionForwardArguments& x, int64_t begin, int64_t end, float* scratch) {
  VisitFloatType(shape.element, [&](auto zero) { RunUnits<decltype(zero)>(shape, x, begin, end, scratch); });
}

size_t ScratchFloats(const AttentionShape& shape) {
  return VisitFloatType(shape.element, [&](auto zero) { return Scratch<decltype(zero)>::Floats(shape); });
}

}  // namespace

extern const AttentionForwardTable kAttentionForward = {{&Scratch<float>::Units, &ScratchFloats}, &Run};

}  // namespace bowline::kernels::BOWLINE_ISA
