// Attention of every head size, f32 and bf16, in f32 (kernels/cpu/attention/attention.h defines it). A warp has kRows
// rows, queries or, for dk and dv, keys. Blocks of 32 of the others stream past them through shared memory, kChunk
// elements of the head at a time: a lane has one of them where products are summed along the head, and an element of
// the head where they are summed over the 32.

#include "kernels/cuda/attention_geometry.h"

namespace {

using namespace bowline::device;

constexpr int kRows = 4, kChunk = 64, kTileStride = kChunk + 1, kOthers = 32;

struct Block {
  int64_t first;  // row of the block
  int64_t head, batch;
  int warp, lane, rows;

  // Blocks of the grid are blocks of `total` rows, then heads, then batches.
  BOWLINE_DEVICE Block(int64_t total, int64_t heads)
      : warp(static_cast<int>(threadIdx.x) / 32),
        lane(static_cast<int>(threadIdx.x) % 32),
        rows(static_cast<int>(blockDim.x) / 32 * kRows) {
    const int64_t blocks = CeilDiv(total, rows);
    // Later blocks of a causal mask have more to do: they begin first.
    first = (blocks - 1 - blockIdx.x % blocks) * rows;
    head = blockIdx.x / blocks % heads;
    batch = blockIdx.x / blocks / heads;
  }
};

// Rows [first, first + count) of a head to shared memory, zeros from `total` on.
template <typename T>
BOWLINE_DEVICE void ReadRows(const T* from, int64_t stride, int64_t first, int count, int64_t total, int64_t dim,
                             float* to) {
  for (int64_t i = threadIdx.x; i < count * dim; i += blockDim.x) {
    const int64_t row = i / dim, d = i - row * dim;
    to[i] = first + row < total ? Widen(from[(first + row) * stride + d]) : 0.0f;
  }
}

BOWLINE_DEVICE void Clear(float* values, int64_t count) {
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) values[i] = 0.0f;
}

// The next chunk of 32 rows, [kOthers][kTileStride], between two barriers.
template <typename T>
BOWLINE_DEVICE void ReadTile(const T* from, int64_t stride, int64_t first, int64_t total, int64_t d0, int64_t dim,
                             float* tile) {
  Barrier();
  for (int i = static_cast<int>(threadIdx.x); i < kOthers * kChunk; i += static_cast<int>(blockDim.x)) {
    const int row = i / kChunk, d = i % kChunk;
    const bool inside = first + row < total && d0 + d < dim;
    tile[row * kTileStride + d] = inside ? Widen(from[(first + row) * stride + d0 + d]) : 0.0f;
  }
  Barrier();
}

// sums[r] += rows[r] . (the lane's row of the tile)
BOWLINE_DEVICE void AddProducts(const float* rows, int64_t dim, int64_t d0, const float* tile, int lane,
                                float (&sums)[kRows]) {
  const int count = static_cast<int>(Smaller(int64_t{kChunk}, dim - d0));
  const float* own = tile + lane * kTileStride;
  for (int d = 0; d < count; ++d) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) sums[r] = MulAdd(rows[r * dim + d0 + d], own[d], sums[r]);
  }
}

// to[r][d0 ...] = shrink[r] to[r][d0 ...] + sum over the lanes' weights[r] times their rows of the tile.
BOWLINE_DEVICE void AddWeighted(const float (&weights)[kRows], const float (&shrink)[kRows], const float* tile,
                                int lane, int64_t d0, int64_t dim, float* to) {
  float sums[kRows][2] = {};
#pragma unroll 4
  for (int j = 0; j < kOthers; ++j) {
    const float first = tile[j * kTileStride + lane], second = tile[j * kTileStride + lane + 32];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float weight = ShuffleFrom(weights[r], j);
      sums[r][0] = MulAdd(weight, first, sums[r][0]);
      sums[r][1] = MulAdd(weight, second, sums[r][1]);
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t d = d0 + lane + 32 * half;
      if (d < dim) to[r * dim + d] = MulAdd(to[r * dim + d], shrink[r], sums[r][half]);
    }
  }
}

// Shared memory: q and sums [rows][head_dim], the tile.
template <typename T>
BOWLINE_DEVICE void Forward(const T* q, const T* k, const T* v, T* out, float* lse, const WideSize& s) {
  const Block block(s.queries, s.heads);
  const int64_t dim = s.head_dim, kv_head = block.head / (s.heads / s.kv_heads);
  float* q_rows = reinterpret_cast<float*>(SharedMemory());
  float* sums = q_rows + block.rows * dim;
  float* tile = sums + block.rows * dim;
  q += s.QueryOffset(block.batch, block.head);
  k += s.KeyOffset(block.batch, kv_head);
  v += s.KeyOffset(block.batch, kv_head);
  ReadRows(q, s.QueryStride(), block.first, block.rows, s.queries, dim, q_rows);
  Clear(sums, block.rows * dim);
  const float* own_q = q_rows + block.warp * kRows * dim;
  float* own_sums = sums + block.warp * kRows * dim;

  const int64_t first = block.first + block.warp * kRows;
  float largest[kRows], total[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) largest[r] = -kInfinity, total[r] = 0.0f;
  const WideSize::Range seen = s.KeysOf(block.first, Smaller(block.first + block.rows, s.queries));
  for (int64_t key = seen.begin; key < seen.end; key += kOthers) {
    float p[kRows] = {}, shrink[kRows];
    for (int64_t d0 = 0; d0 < dim; d0 += kChunk) {
      ReadTile(k, s.KeyStride(), key, s.keys, d0, dim, tile);
      AddProducts(own_q, dim, d0, tile, block.lane, p);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const bool visible = s.KeysOf(Smaller(first + r, s.queries - 1)).Has(key + block.lane);
      const float score = visible ? p[r] * s.scale : -kInfinity;
      const float larger = Max(largest[r], WarpMax(score));
      // No key so far: nothing to shrink, and no number to subtract.
      shrink[r] = largest[r] == -kInfinity ? 0.0f : Exp(largest[r] - larger);
      p[r] = visible ? Exp(score - larger) : 0.0f;
      total[r] = total[r] * shrink[r] + p[r];
      largest[r] = larger;
    }
    for (int64_t d0 = 0; d0 < dim; d0 += kChunk) {
      ReadTile(v, s.KeyStride(), key, s.keys, d0, dim, tile);
      AddWeighted(p, shrink, tile, block.lane, d0, dim, own_sums);
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float sum = WarpSum(total[r]), inverse = 1.0f / sum;
    if (first + r >= s.queries) continue;
    T* to = out + s.QueryOffset(block.batch, block.head) + (first + r) * s.QueryStride();
    for (int64_t d = block.lane; d < dim; d += 32) to[d] = Narrow<T>(own_sums[r * dim + d] * inverse);
    if (block.lane == 0) lse[(block.batch * s.heads + block.head) * s.queries + first + r] = largest[r] + Log(sum);
  }
}

// delta[b, h, i] = dout[b, i, h] . out[b, i, h], a warp each.
template <typename T>
BOWLINE_DEVICE void Delta(const T* out, const T* dout, float* delta, int64_t rows, int64_t queries, int64_t heads,
                          int64_t dim) {
  const int64_t row = GlobalThread() / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int64_t d = lane; d < dim; d += 32) sum = MulAdd(Widen(out[row * dim + d]), Widen(dout[row * dim + d]), sum);
  sum = WarpSum(sum);
  const int64_t head = row % heads, query = row / heads % queries, batch = row / heads / queries;
  if (lane == 0) delta[(batch * heads + head) * queries + query] = sum;
}

// Shared memory: q, dout and dq [rows][head_dim], the tile.
template <typename T>
BOWLINE_DEVICE void BackwardQueries(const T* q, const T* k, const T* v, const float* lse, const T* dout,
                                    const float* delta, T* dq, const WideSize& s) {
  const Block block(s.queries, s.heads);
  const int64_t dim = s.head_dim, kv_head = block.head / (s.heads / s.kv_heads);
  float* q_rows = reinterpret_cast<float*>(SharedMemory());
  float* dout_rows = q_rows + block.rows * dim;
  float* sums = dout_rows + block.rows * dim;
  float* tile = sums + block.rows * dim;
  const int64_t head_offset = s.QueryOffset(block.batch, block.head);
  k += s.KeyOffset(block.batch, kv_head);
  v += s.KeyOffset(block.batch, kv_head);
  ReadRows(q + head_offset, s.QueryStride(), block.first, block.rows, s.queries, dim, q_rows);
  ReadRows(dout + head_offset, s.QueryStride(), block.first, block.rows, s.queries, dim, dout_rows);
  Clear(sums, block.rows * dim);
  const int64_t own = block.warp * kRows * dim, first = block.first + block.warp * kRows;

  float own_lse[kRows], own_delta[kRows], one[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int64_t at = (block.batch * s.heads + block.head) * s.queries + Smaller(first + r, s.queries - 1);
    own_lse[r] = lse[at];
    own_delta[r] = delta[at];
    one[r] = 1.0f;
  }
  const WideSize::Range seen = s.KeysOf(block.first, Smaller(block.first + block.rows, s.queries));
  for (int64_t key = seen.begin; key < seen.end; key += kOthers) {
    float p[kRows] = {}, ds[kRows] = {};
    for (int64_t d0 = 0; d0 < dim; d0 += kChunk) {
      ReadTile(k, s.KeyStride(), key, s.keys, d0, dim, tile);
      AddProducts(q_rows + own, dim, d0, tile, block.lane, p);
      ReadTile(v, s.KeyStride(), key, s.keys, d0, dim, tile);
      AddProducts(dout_rows + own, dim, d0, tile, block.lane, ds);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const bool visible = s.KeysOf(Smaller(first + r, s.queries - 1)).Has(key + block.lane);
      ds[r] = visible ? Exp(p[r] * s.scale - own_lse[r]) * (ds[r] - own_delta[r]) : 0.0f;
    }
    for (int64_t d0 = 0; d0 < dim; d0 += kChunk) {
      ReadTile(k, s.KeyStride(), key, s.keys, d0, dim, tile);
      AddWeighted(ds, one, tile, block.lane, d0, dim, sums + own);
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (first + r >= s.queries) continue;
    T* to = dq + head_offset + (first + r) * s.QueryStride();
    for (int64_t d = block.lane; d < dim; d += 32) to[d] = Narrow<T>(sums[own + r * dim + d] * s.scale);
  }
}

// Shared memory: k, v, dk and dv [rows][head_dim], the tile. The query heads of a group are summed in order.
template <typename T>
BOWLINE_DEVICE void BackwardKeys(const T* q, const T* k, const T* v, const float* lse, const T* dout,
                                 const float* delta, T* dk, T* dv, const WideSize& s) {
  const Block block(s.keys, s.kv_heads);
  const int64_t dim = s.head_dim, group = s.heads / s.kv_heads, kv_offset = s.KeyOffset(block.batch, block.head);
  float* k_rows = reinterpret_cast<float*>(SharedMemory());
  float* v_rows = k_rows + block.rows * dim;
  float* dk_sums = v_rows + block.rows * dim;
  float* dv_sums = dk_sums + block.rows * dim;
  float* tile = dv_sums + block.rows * dim;
  ReadRows(k + kv_offset, s.KeyStride(), block.first, block.rows, s.keys, dim, k_rows);
  ReadRows(v + kv_offset, s.KeyStride(), block.first, block.rows, s.keys, dim, v_rows);
  Clear(dk_sums, 2 * block.rows * dim);
  const int64_t own = block.warp * kRows * dim, first = block.first + block.warp * kRows;

  float one[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) one[r] = 1.0f;
  const WideSize::Range seen = s.QueriesOf(block.first, Smaller(block.first + block.rows, s.keys));
  for (int64_t head = block.head * group; head < (block.head + 1) * group; ++head) {
    const T* head_q = q + s.QueryOffset(block.batch, head);
    const T* head_dout = dout + s.QueryOffset(block.batch, head);
    for (int64_t query = seen.begin; query < seen.end; query += kOthers) {
      float p[kRows] = {}, ds[kRows] = {};
      for (int64_t d0 = 0; d0 < dim; d0 += kChunk) {
        ReadTile(head_q, s.QueryStride(), query, s.queries, d0, dim, tile);
        AddProducts(k_rows + own, dim, d0, tile, block.lane, p);
        ReadTile(head_dout, s.QueryStride(), query, s.queries, d0, dim, tile);
        AddProducts(v_rows + own, dim, d0, tile, block.lane, ds);
      }
      const int64_t lane_query = query + block.lane, inside = Smaller(lane_query, s.queries - 1);
      const WideSize::Range lane_keys = s.KeysOf(inside);
      const int64_t at = (block.batch * s.heads + head) * s.queries + inside;
      const float lane_lse = lse[at], lane_delta = delta[at];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const bool visible = lane_query < s.queries && lane_keys.Has(first + r);
        p[r] = visible ? Exp(p[r] * s.scale - lane_lse) : 0.0f;
        ds[r] = visible ? p[r] * (ds[r] - lane_delta) : 0.0f;
      }
      for (int64_t d0 = 0; d0 < dim; d0 += kChunk) {
        ReadTile(head_dout, s.QueryStride(), query, s.queries, d0, dim, tile);
        AddWeighted(p, one, tile, block.lane, d0, dim, dv_sums + own);
        ReadTile(head_q, s.QueryStride(), query, s.queries, d0, dim, tile);
        AddWeighted(ds, one, tile, block.lane, d0, dim, dk_sums + own);
      }
    }
  }
  Barrier();  // where no query sees a key, the sums are still being cleared
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (first + r >= s.keys) continue;
    const int64_t to = kv_offset + (first + r) * s.KeyStride();
    for (int64_t d = block.lane; d < dim; d += 32) {
      dk[to + d] = Narrow<T>(dk_sums[own + r * dim + d] * s.scale);
      dv[to + d] = Narrow<T>(dv_sums[own + r * dim + d]);
    }
  }
}

}  // namespace

#define BOWLINE_ATTENTION(suffix, T)                                                                                  \
  BOWLINE_DEVICE_FUNCTION(bowline_attention_forward_##suffix, 256, const T* q, const T* k, const T* v, T* out,        \
                          float* lse, BOWLINE_ATTENTION_PARAMETERS) {                                                 \
    Forward<T>(q, k, v, out, lse, BOWLINE_ATTENTION_SIZE(int64_t));                                                   \
  }                                                                                                                   \
  BOWLINE_DEVICE_FUNCTION(bowline_attention_backward_queries_##suffix, 256, const T* q, const T* k, const T* v,       \
                          const float* lse, const T* dout, const float* delta, T* dq, BOWLINE_ATTENTION_PARAMETERS) { \
    BackwardQueries<T>(q, k, v, lse, dout, delta, dq, BOWLINE_ATTENTION_SIZE(int64_t));                               \
  }                                                                                                                   \
  BOWLINE_DEVICE_FUNCTION(bowline_attention_backward_keys_##suffix, 256, const T* q, const T* k, const T* v,          \
                          const float* lse, const T* dout, const float* delta, T* dk, T* dv,                          \
                          BOWLINE_ATTENTION_PARAMETERS) {                                                             \
    BackwardKeys<T>(q, k, v, lse, dout, delta, dk, dv, BOWLINE_ATTENTION_SIZE(int64_t));                              \
  }
BOWLINE_ATTENTION(f32, float)
BOWLINE_ATTENTION(bf16, Bf16)
#undef BOWLINE_ATTENTION

BOWLINE_DEVICE_FUNCTION(bowline_attention_delta_f32, 256, const float* out, const float* dout, float* delta,
                        int64_t rows, int64_t queries, int64_t heads, int64_t head_dim) {
  Delta(out, dout, delta, rows, queries, heads, head_dim);
}
BOWLINE_DEVICE_FUNCTION(bowline_attention_delta_bf16, 256, const Bf16* out, const Bf16* dout, float* delta,
                        int64_t rows, int64_t queries, int64_t heads, int64_t head_dim) {
  Delta(out, dout, delta, rows, queries, heads, head_dim);
}
