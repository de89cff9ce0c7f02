#include "kernels/cpu/attention/attention_words.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

template <typename T>
using Scratch = AttentionBackwardMemory<WordsOf<T>>;
constexpr int64_t kBlockK = Scratch<float>::kBlockK, kKeyRange = Scratch<float>::kKeyRange;

// p and ds of the strip from query `strip` of the block, zero where a query does not see the key. Whole tiles of rows
// are written, because the sums over queries read them.
template <typename T>
void Differentiate(const StripMask& mask, int64_t keys, int64_t words, const Matrix& k, const Matrix& v, float scale,
                   const Scratch<T>& s, int64_t strip) {
  const auto to = [&](int n) { return Smaller(RoundUp(mask.seen[n], kTileRows), keys); };
  SplitVectors(mask.from, to(0), to(1),
               [&](auto vectors, int first, int64_t begin, int64_t end) __attribute__((always_inline)) {
                 constexpr int kVectors = vectors.value;
                 const int64_t lane = strip + first * kLanes;
                 const float *q = s.q_strips + strip * words + first * kLanes, *dout = s.dout_strips + (q - s.q_strips);
                 ForRowTiles(end - begin, [&](auto tile, int64_t row) __attribute__((always_inline)) {
                   constexpr int kRows = tile.value;
                   const int64_t key = begin + row, at = key * kBlockQ + lane;
                   Vec p[kRows][kVectors] = {};
                   Accumulate<OperandOf<T>, kRows, kVectors>(words, k.Row(key), k.stride, 1, q, kStrip, p);
#pragma clang loop unroll(full)
                   for (int i = 0; i < kRows; ++i) {
#pragma clang loop unroll(full)
                     for (int n = 0; n < kVectors; ++n)
                       p[i][n] = Exponential<T>(p[i][n], scale, Load(s.lse + lane + n * kLanes));
                   }
                   if (key + kRows > mask.all || key < Larger(mask.hidden[0], mask.hidden[1])) {
#pragma clang loop unroll(full)
                     for (int i = 0; i < kRows; ++i) {
#pragma clang loop unroll(full)
                       for (int n = 0; n < kVectors; ++n) {
                         const IntVec visible = mask.visible + (first + n) * mask.step,
                                      starts = mask.first + (first + n) * mask.step;
                         p[i][n] = visible > static_cast<int>(key + i) ? p[i][n] : Vec(0.0f);
                         p[i][n] = starts > static_cast<int>(key + i) ? Vec(0.0f) : p[i][n];
                       }
                     }
                   }
#pragma clang loop unroll(full)
                   for (int i = 0; i < kRows; ++i) StoreTerms<T>(s.p, at + i * kBlockQ, p[i]);
                   Vec ds[kRows][kVectors] = {};
                   Accumulate<OperandOf<T>, kRows, kVectors>(words, v.Row(key), v.stride, 1, dout, kStrip, ds);
#pragma clang loop unroll(full)
                   for (int i = 0; i < kRows; ++i) {
#pragma clang loop unroll(full)
                     for (int n = 0; n < kVectors; ++n) {
                       // p need not stay in registers where it was stored without rounding.
                       const Vec probability = kPairs<T> ? p[i][n] : Load(s.p + at + i * kBlockQ + n * kLanes);
                       ds[i][n] = probability * (ds[i][n] - Load(s.delta + lane + n * kLanes));
                     }
                     StoreTerms<T>(s.ds, at + i * kBlockQ, ds[i]);
                   }
                   if constexpr (kPairs<T>) StoreRowPairs(s.ds_across + key / 2 * kBlockQ + lane, kBlockQ, ds);
                 });
               });
}

// dv[j] += sum_i p[j][i] dout[i] and dk[j] += sum_i ds[j][i] q[i] for the keys of a block, where query i of `queries`
// sees key j from i = j - visible_to_first + 1 on, and `window` of them do if it is not 0.
template <typename T>
void AddKeyGradients(const Scratch<T>& s, int64_t keys, int64_t queries, int64_t head_dim, int64_t visible_to_first,
                     int64_t window, float* dk, float* dv) {
  constexpr int64_t kSteps = kStepsOf<T>, kRow = kBlockQ / kSteps;
  const int64_t padded = RoundUp(head_dim, kStrip), words = CeilDiv(queries, kSteps);
  for (int64_t d = 0; d < head_dim; d += kStrip) {
    const float *q = s.q_panels + d * words, *dout = s.dout_panels + d * words;
    const auto add = [&](auto vectors) __attribute__((always_inline)) {
      ForRowTiles(keys, [&](auto tile, int64_t j) __attribute__((always_inline)) {
        const int64_t first = Larger(0, j - visible_to_first + 1) / kSteps, at = j * kRow + first;
        const int64_t end =
            window == 0 ? words
                        : Smaller(words, CeilDiv(Larger(0, j + tile.value - visible_to_first + window), kSteps));
        if (first >= end) return;
        using Operand = OperandOf<T>;
        AddProduct<Operand, tile.value, vectors.value>(end - first, s.p + at, kRow, 1, dout + first * kStrip, kStrip,
                                                       dv + j * padded + d, padded);
        AddProduct<Operand, tile.value, vectors.value>(end - first, s.ds + at, kRow, 1, q + first * kStrip, kStrip,
                                                       dk + j * padded + d, padded);
      });
    };
    if (head_dim - d > kLanes) {
      add(Constant<2>());
    } else {
      add(Constant<1>());
    }
  }
}

// One query head and its key head, from their first query and key.
template <typename T>
struct Head {
  const T *q, *k, *v, *out;
  const float* lse;
  const T* dout;
  T* dq;
};

template <typename T>
void PackQueries(const AttentionShape& shape, BackwardPart part, const Scratch<T>& s, const Head<T>& head, int64_t q0,
                 int64_t count) {
  const int64_t dim = shape.head_dim, stride = shape.heads * dim;
  const T *q = head.q + q0 * stride, *dout = head.dout + q0 * stride;
  PackStrips(count, dim, q, stride, shape.scale * kLog2E, s.q_strips);
  PackStrips(count, dim, dout, stride, 1.0f, s.dout_strips);
  if (part != BackwardPart::kQueries) {
    PackPanels(count, dim, q, stride, s.q_panels);
    PackPanels(count, dim, dout, stride, s.dout_panels);
  }
  for (int64_t i = 0; i < kBlockQ; ++i) {
    s.lse[i] = i < count ? head.lse[q0 + i] * kLog2E : 0.0f;
    s.delta[i] = i < count ? Dot(dim, dout + i * stride, head.out + (q0 + i) * stride) : 0.0f;
  }
}

// Computes the gradients from the pairs of queries [q0, q0 + kBlockQ) and keys [key_begin, key_end). Adds to s.dk and
// s.dv, whose first row is key_begin, and writes dq unless `part` is kKeys.
template <typename T>
void BackwardBlock(const AttentionShape& shape, BackwardPart part, const Scratch<T>& s, const Head<T>& head, int64_t q0,
                   int64_t key_begin, int64_t key_end) {
  const int64_t dim = shape.head_dim, padded = RoundUp(dim, kStrip), kv_stride = shape.kv_heads * dim;
  const int64_t words = CeilDiv(dim, kStepsOf<T>);
  const int64_t count = Smaller(shape.queries - q0, kBlockQ);
  const int64_t limit = Smaller(VisibleKeys(shape, q0 + count - 1), key_end);
  // Blocks of keys are the same for all units, so that sums are.
  const int64_t start = Larger(key_begin, FirstKey(shape, q0) / kBlockK * kBlockK);
  if (limit <= start) return;
  PackQueries(shape, part, s, head, q0, count);
  __builtin_memset(s.dq, 0, static_cast<size_t>(kBlockQ * dim) * sizeof(float));
  for (int64_t k0 = start; k0 < limit; k0 += kBlockK) {
    const int64_t keys = Smaller(limit - k0, kBlockK);
    const T* block_k = head.k + k0 * kv_stride;
    const Matrix k = RowsAlong(keys, dim, block_k, kv_stride, s.k);
    const Matrix v = RowsAlong(keys, dim, head.v + k0 * kv_stride, kv_stride, s.v);
    const bool queries = part != BackwardPart::kKeys;
    const Matrix k_across = kPairs<T> && queries ? RowsAcross(keys, dim, block_k, kv_stride, s.k_across) : k;
    for (int64_t i = 0; i < count; i += kStrip) {
      const StripMask mask(shape, q0 + i, Smaller(count - i, kStrip), k0, keys);
      Differentiate(mask, keys, words, k, v, shape.scale * kLog2E, s, i);
      if (queries) AddWeightedRows<OperandOf<T>>(mask, dim, k_across, s.ds_across + i, kBlockQ, s.dq + i * dim);
    }
    if (part == BackwardPart::kQueries) continue;
    const int64_t at = (k0 - key_begin) * padded;
    AddKeyGradients(s, keys, count, dim, VisibleKeys(shape, q0) - k0, shape.window, s.dk + at, s.dv + at);
  }
  if (part == BackwardPart::kKeys) return;
  const int64_t stride = shape.heads * dim;
  for (int64_t i = 0; i < count; i += kStrip) {
    const Vec scale[2] = {Vec(shape.scale), Vec(shape.scale)};
    UnpackStrip(Smaller(count - i, kStrip), dim, s.dq + i * dim, scale, head.dq + (q0 + i) * stride, stride);
  }
}

template <typename T>
Head<T> HeadOf(const AttentionShape& shape, const AttentionBackwardArguments& x, int64_t batch, int64_t head) {
  const int64_t q = (batch * shape.queries * shape.heads + head) * shape.head_dim;
  const int64_t kv_head = head / (shape.heads / shape.kv_heads);
  const int64_t kv = (batch * shape.keys * shape.kv_heads + kv_head) * shape.head_dim;
  return {static_cast<const T*>(x.q) + q,
          static_cast<const T*>(x.k) + kv,
          static_cast<const T*>(x.v) + kv,
          static_cast<const T*>(x.out) + q,
          x.lse + (batch * shape.heads + head) * shape.queries,
          static_cast<const T*>(x.dout) + q,
          static_cast<T*>(x.dq) + q};
}

template <typename T>
void BackwardKeys(const AttentionShape& shape, BackwardPart part, const Scratch<T>& s,
                  const AttentionBackwardArguments& x, int64_t batch, int64_t kv_head, int64_t key_begin,
                  int64_t key_end) {
  const int64_t dim = shape.head_dim, padded = RoundUp(dim, kStrip), kv_stride = shape.kv_heads * dim;
  const int64_t group = shape.heads / shape.kv_heads, keys = key_end - key_begin;
  __builtin_memset(s.dk, 0, static_cast<size_t>(keys * padded) * sizeof(float));
  __builtin_memset(s.dv, 0, static_cast<size_t>(keys * padded) * sizeof(float));
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (int64_t q0 = 0; q0 < shape.queries; q0 += kBlockQ) {
      BackwardBlock(shape, part, s, HeadOf<T>(shape, x, batch, head), q0, key_begin, key_end);
    }
  }
  const int64_t kv = ((batch * shape.keys + key_begin) * shape.kv_heads + kv_head) * dim;
  UnpackRows(keys, dim, s.dk, padded, shape.scale, static_cast<T*>(x.dk) + kv, kv_stride);
  UnpackRows(keys, dim, s.dv, padded, 1.0f, static_cast<T*>(x.dv) + kv, kv_stride);
}

template <typename T>
void RunUnits(const AttentionShape& shape, BackwardPart part, const AttentionBackwardArguments& x, int64_t begin,
              int64_t end, float* base) {
  const Scratch<T> s(shape, part, base);
  const int64_t pieces = Scratch<T>::Pieces(shape, part);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t index = unit / pieces, piece = FromBothEnds(unit % pieces, pieces);
    if (part == BackwardPart::kQueries) {
      BackwardBlock(shape, part, s, HeadOf<T>(shape, x, index / shape.heads, index % shape.heads), piece * kBlockQ, 0,
                    shape.keys);
    } else {
      const int64_t first = piece * kKeyRange;
      BackwardKeys<T>(shape, part, s, x, index / shape.kv_heads, index % shape.kv_heads, first,
                      part == BackwardPart::kAll ? shape.keys : Smaller(first + kKeyRange, shape.keys));
    }
  }
}

void Run(const AttentionShape& shape, BackwardPart part, const AttentionBackwardArguments& x, int64_t begin,
         int64_t end, float* scratch) {
  (shape.element == ElementType::kBF16 ? &RunUnits<Bf16> : &RunUnits<float>)(shape, part, x, begin, end, scratch);
}

size_t ScratchFloats(const AttentionShape& shape, BackwardPart part) {
  return shape.element == ElementType::kBF16 ? Scratch<Bf16>::Floats(shape, part) : Scratch<float>::Floats(shape, part);
}

}  // namespace

extern const AttentionBackwardTable kAttentionBackward = {{&Scratch<float>::Units, &ScratchFloats}, &Run};

}  // namespace bowline::kernels::BOWLINE_ISA
