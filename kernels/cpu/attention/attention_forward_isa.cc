#include "kernels/cpu/attention/attention_tiles.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

struct Scratch {
  float* k_columns;  // K^T as the right factor of scores
  float* v_panels;   // V as the right factor of out
  float *q, *scores, *out, *maximum, *sum;
  int64_t floats;

  Scratch(const AttentionShape& shape, float* base) {
    const int64_t padded = RoundUp(shape.head_dim, kTileN);
    ScratchCursor cursor{base, 0};
    k_columns = cursor.Take(RoundUp(shape.keys, kTileN) * shape.head_dim);
    v_panels = cursor.Take(shape.keys * padded);
    q = cursor.Take(kBlockQ * shape.head_dim);
    scores = cursor.Take(kBlockQ * kBlockK);
    out = cursor.Take(kBlockQ * padded);
    maximum = cursor.Take(kBlockQ);
    sum = cursor.Take(kBlockQ);
    floats = cursor.used;
  }
};

// Turns a row of scores into exp(score - maximum), rescaling what was summed under the maximum so far.
void UpdateRow(int64_t visible, int64_t padded_keys, int64_t padded_dim, float* row, float* out, float* maximum,
               float* sum) {
  const int64_t vectors = RoundUp(visible, kLanes);
  for (int64_t j = visible; j < vectors; ++j) row[j] = -__builtin_inff();
  for (int64_t j = vectors; j < padded_keys; ++j) row[j] = 0.0f;
  if (visible == 0) return;

  Vec largest = Load(row);
  for (int64_t j = kLanes; j < vectors; j += kLanes) largest = Max(largest, Load(row + j));
  const float row_maximum = ReduceMax(largest);
  if (row_maximum > *maximum) {
    const Vec shrink = ExpNonPositive(Vec(*maximum - row_maximum));
    for (int64_t d = 0; d < padded_dim; d += kLanes) Store(out + d, Load(out + d) * shrink);
    *sum *= shrink[0];
    *maximum = row_maximum;
  }
  Vec total = Vec(0.0f);
  for (int64_t j = 0; j < vectors; j += kLanes) {
    const Vec p = ExpNonPositive(Load(row + j) - Vec(*maximum));
    Store(row + j, p);
    total += p;
  }
  *sum += ReduceAdd(total);
}

void AttendBlock(const AttentionShape& shape, const Scratch& s, const float* q, int64_t q0, int64_t count, float* out,
                 float* lse) {
  const int64_t padded = RoundUp(shape.head_dim, kTileN);
  const int64_t q_stride = shape.heads * shape.head_dim;
  PackPanels<kTileM>(count, shape.head_dim, q, q_stride, 1, shape.scale, s.q);
  __builtin_memset(s.out, 0, static_cast<size_t>(kBlockQ * padded) * sizeof(float));
  for (int64_t i = 0; i < count; ++i) {
    s.maximum[i] = -__builtin_inff();
    s.sum[i] = 0.0f;
  }

  const int64_t limit = KeyLimit(shape, q0 + count);
  for (int64_t k0 = 0; k0 < limit; k0 += kBlockK) {
    const int64_t keys = Smaller(limit - k0, kBlockK);
    ScoreBlock(count, keys, shape.head_dim, s.q, s.k_columns + k0 * shape.head_dim, s.scores);
    for (int64_t i = 0; i < count; ++i) {
      UpdateRow(VisibleKeys(shape, q0 + i, k0, keys), RoundUp(keys, kTileN), padded, s.scores + i * kBlockK,
                s.out + i * padded, s.maximum + i, s.sum + i);
    }
    AddWeighted(count, keys, padded, s.scores, s.v_panels + k0 * kTileN, shape.keys * kTileN, s.out);
  }

  for (int64_t i = 0; i < count; ++i) {
    for (int64_t d = 0; d < shape.head_dim; ++d) out[i * q_stride + d] = s.out[i * padded + d] / s.sum[i];
    lse[i] = static_cast<float>(s.maximum[i] + __builtin_log(static_cast<double>(s.sum[i])));
  }
}

void Run(const AttentionShape& shape, const AttentionForwardArguments& x, int64_t begin, int64_t end, float* base) {
  const Scratch s(shape, base);
  const int64_t kv_stride = shape.kv_heads * shape.head_dim;
  int64_t packed_group = -1;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t batch = unit / shape.heads, head = unit % shape.heads;
    const int64_t kv_head = head / (shape.heads / shape.kv_heads);
    if (const int64_t group = batch * shape.kv_heads + kv_head; group != packed_group) {
      const int64_t offset = (batch * shape.keys * shape.kv_heads + kv_head) * shape.head_dim;
      PackPanels<kTileN>(shape.keys, shape.head_dim, x.k + offset, kv_stride, 1, 1.0f, s.k_columns);
      PackPanels<kTileN>(shape.head_dim, shape.keys, x.v + offset, 1, kv_stride, 1.0f, s.v_panels);
      packed_group = group;
    }
    for (int64_t q0 = 0; q0 < shape.queries; q0 += kBlockQ) {
      const int64_t offset = ((batch * shape.queries + q0) * shape.heads + head) * shape.head_dim;
      AttendBlock(shape, s, x.q + offset, q0, Smaller(shape.queries - q0, kBlockQ), x.out + offset,
                  x.lse + unit * shape.queries + q0);
    }
  }
}

size_t ScratchFloats(const AttentionShape& shape) { return static_cast<size_t>(Scratch(shape, nullptr).floats); }

}  // namespace

extern const AttentionForwardTable kAttentionForward = {&ScratchFloats, &Run};

}  // namespace bowline::kernels::BOWLINE_ISA
