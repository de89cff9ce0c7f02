#include "kernels/cpu/attention/attention_tiles.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

struct Scratch {
  // Of the key head, packed once: K^T and V^T as right factors of scores and of dp, scale * K as that of dq.
  float *k_columns, *v_columns, *k_panels;
  float *dk, *dv;  // [keys rounded up][padded head_dim], sums over the query heads of the group
  // Of a block of queries: scale * q and dout as left factors (rows) and as right factors (panels).
  float *q_rows, *dout_rows, *q_panels, *dout_panels;
  float *p, *ds, *dq, *delta;
  int64_t floats;

  Scratch(const AttentionShape& shape, float* base) {
    const int64_t padded = RoundUp(shape.head_dim, kTileN), keys = RoundUp(shape.keys, kTileN);
    ScratchCursor cursor{base, 0};
    k_columns = cursor.Take(keys * shape.head_dim);
    v_columns = cursor.Take(keys * shape.head_dim);
    k_panels = cursor.Take(shape.keys * padded);
    dk = cursor.Take(keys * padded);
    dv = cursor.Take(keys * padded);
    q_rows = cursor.Take(kBlockQ * shape.head_dim);
    dout_rows = cursor.Take(kBlockQ * shape.head_dim);
    q_panels = cursor.Take(kBlockQ * padded);
    dout_panels = cursor.Take(kBlockQ * padded);
    p = cursor.Take(kBlockQ * kBlockK);
    ds = cursor.Take(kBlockQ * kBlockK);
    dq = cursor.Take(kBlockQ * padded);
    delta = cursor.Take(kBlockQ);
    floats = cursor.used;
  }
};

// In place: scores -> p, dp -> ds; zero where the key is not seen.
void DifferentiateRow(int64_t visible, int64_t padded_keys, float lse, float delta, float* scores, float* dp) {
  int64_t j = 0;
  for (; j < visible; j += kLanes) {
    const Vec p = ExpNonPositive(Load(scores + j) - Vec(lse));
    Store(dp + j, p * (Load(dp + j) - Vec(delta)));
    Store(scores + j, p);
  }
  for (j = visible; j < padded_keys; ++j) scores[j] = dp[j] = 0.0f;
}

struct QueryBlock {
  const float *q, *out, *lse, *dout;
  float* dq;
  int64_t first, count;
};

void BackwardBlock(const AttentionShape& shape, const Scratch& s, const QueryBlock& block) {
  const int64_t dim = shape.head_dim, padded = RoundUp(dim, kTileN), stride = shape.heads * dim;
  PackPanels<kTileM>(block.count, dim, block.q, stride, 1, shape.scale, s.q_rows);
  PackPanels<kTileM>(block.count, dim, block.dout, stride, 1, 1.0f, s.dout_rows);
  PackPanels<kTileN>(dim, block.count, block.q, 1, stride, shape.scale, s.q_panels);
  PackPanels<kTileN>(dim, block.count, block.dout, 1, stride, 1.0f, s.dout_panels);
  for (int64_t i = 0; i < block.count; ++i) {
    double delta = 0;
    for (int64_t d = 0; d < dim; ++d) {
      delta += static_cast<double>(block.dout[i * stride + d]) * block.out[i * stride + d];
    }
    s.delta[i] = static_cast<float>(delta);
  }
  __builtin_memset(s.dq, 0, static_cast<size_t>(kBlockQ * padded) * sizeof(float));

  const int64_t limit = KeyLimit(shape, block.first + block.count);
  for (int64_t k0 = 0; k0 < limit; k0 += kBlockK) {
    const int64_t keys = Smaller(limit - k0, kBlockK);
    ScoreBlock(block.count, keys, dim, s.q_rows, s.k_columns + k0 * dim, s.p);
    ScoreBlock(block.count, keys, dim, s.dout_rows, s.v_columns + k0 * dim, s.ds);
    for (int64_t i = 0; i < block.count; ++i) {
      DifferentiateRow(VisibleKeys(shape, block.first + i, k0, keys), RoundUp(keys, kTileN), block.lse[i], s.delta[i],
                       s.p + i * kBlockK, s.ds + i * kBlockK);
    }
    AddWeightedTransposed(block.count, keys, padded, s.p, s.dout_panels, block.count * kTileN, s.dv + k0 * padded);
    AddWeightedTransposed(block.count, keys, padded, s.ds, s.q_panels, block.count * kTileN, s.dk + k0 * padded);
    AddWeighted(block.count, keys, padded, s.ds, s.k_panels + k0 * kTileN, shape.keys * kTileN, s.dq);
  }
  for (int64_t i = 0; i < block.count; ++i) {
    for (int64_t d = 0; d < dim; ++d) block.dq[i * stride + d] = s.dq[i * padded + d];
  }
}

void Run(const AttentionShape& shape, const AttentionBackwardArguments& x, int64_t begin, int64_t end, float* base) {
  const Scratch s(shape, base);
  const int64_t dim = shape.head_dim, padded = RoundUp(dim, kTileN);
  const int64_t group = shape.heads / shape.kv_heads, kv_stride = shape.kv_heads * dim;
  const size_t sums = static_cast<size_t>(RoundUp(shape.keys, kTileN) * padded) * sizeof(float);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t batch = unit / shape.kv_heads, kv_head = unit % shape.kv_heads;
    const int64_t kv_offset = (batch * shape.keys * shape.kv_heads + kv_head) * dim;
    PackPanels<kTileN>(shape.keys, dim, x.k + kv_offset, kv_stride, 1, 1.0f, s.k_columns);
    PackPanels<kTileN>(shape.keys, dim, x.v + kv_offset, kv_stride, 1, 1.0f, s.v_columns);
    PackPanels<kTileN>(dim, shape.keys, x.k + kv_offset, 1, kv_stride, shape.scale, s.k_panels);
    __builtin_memset(s.dk, 0, sums);
    __builtin_memset(s.dv, 0, sums);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (int64_t q0 = 0; q0 < shape.queries; q0 += kBlockQ) {
        const int64_t offset = ((batch * shape.queries + q0) * shape.heads + head) * dim;
        const float* lse = x.lse + (batch * shape.heads + head) * shape.queries + q0;
        BackwardBlock(shape, s,
                      {x.q + offset, x.out + offset, lse, x.dout + offset, x.dq + offset, q0,
                       Smaller(shape.queries - q0, kBlockQ)});
      }
    }
    for (int64_t j = 0; j < shape.keys; ++j) {
      for (int64_t d = 0; d < dim; ++d) {
        x.dk[kv_offset + j * kv_stride + d] = s.dk[j * padded + d];
        x.dv[kv_offset + j * kv_stride + d] = s.dv[j * padded + d];
      }
    }
  }
}

size_t ScratchFloats(const AttentionShape& shape) { return static_cast<size_t>(Scratch(shape, nullptr).floats); }

}  // namespace

extern const AttentionBackwardTable kAttentionBackward = {&ScratchFloats, &Run};

}  // namespace bowline::kernels::BOWLINE_ISA
