#ifndef BOWLINE_KERNELS_CPU_PAGED_PAGED_TILE_H_
#define BOWLINE_KERNELS_CPU_PAGED_PAGED_TILE_H_

// Attention of a tile of queries of one sequence. Only for *_isa.cc files.

#include "kernels/cpu/attention/attention_softmax.h"
#include "kernels/cpu/paged/paged_attention.h"
#include "kernels/cpu/paged/paged_blocks.h"

namespace bowline::kernels::BOWLINE_ISA {

// The queries of a tile. Query i begins at element at[i] of `query` and `out` and sees positions [begin[i], end[i]),
// which ascend with i. Entries beyond the tile's last query repeat that query.
struct TileQueries {
  static constexpr int64_t kMost = PagedTileMemory::kTileQueries;
  int64_t at[kMost], begin[kMost], end[kMost];

  TileQueries(const PagedAttentionShape& shape, const PagedTile& tile) {
    const int64_t group = PagedGroup(shape), positions = shape.paged.table * shape.paged.block_size;
    for (int64_t i = 0; i < kMost; ++i) {
      const int64_t query = tile.first + Smaller(i, tile.count - 1), row = query / group;
      at[i] = ((tile.row + row) * shape.query_heads + tile.head * group + query % group) * shape.paged.head_dim;
      end[i] = Smaller(Larger(tile.position + row, 0), positions - 1) + 1;
      begin[i] = shape.window == 0 ? 0 : Larger(0, end[i] - shape.window);
    }
  }
};

// Which of positions [k0, k0 + keys) the strip of queries from query `strip` on sees. Members as in StripMask.
struct TileMask {
  int64_t from, all;
  int64_t seen[2], hidden[2];
  IntVec first[2], visible[2];

  TileMask(const TileQueries& queries, int64_t strip, int64_t count, int64_t k0, int64_t keys) {
    const auto inside = [&](int64_t position) { return Larger(0, Smaller(position - k0, keys)); };
    from = inside(queries.begin[strip]) / kTileRows * kTileRows;
    all = inside(queries.end[strip]);
    for (int n = 0; n < 2; ++n) {
      const int64_t lanes = Smaller(count - n * kLanes, kLanes), last = strip + n * kLanes + lanes - 1;
      seen[n] = lanes <= 0 ? 0 : inside(queries.end[last]);
      hidden[n] = lanes <= 0 ? 0 : Smaller(inside(queries.begin[last]), seen[n]);
      for (int i = 0; i < kLanes; ++i) {
        first[n][i] = static_cast<int>(inside(queries.begin[strip + n * kLanes + i]));
        visible[n][i] = static_cast<int>(inside(queries.end[strip + n * kLanes + i]));
      }
    }
  }

  IntVec First(int n) const { return first[n]; }
  IntVec Visible(int n) const { return visible[n]; }
};

// Replaces infinities and NaNs by zero. Returns whether all values were finite.
static bool ZeroWhatIsNotFinite(int64_t count, float* values) {
  IntVec wrong = IntVec(0);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Vec value = Load(values + i);
    const IntVec finite = value - value == Vec(0.0f);
    wrong |= ~finite;
    Store(values + i, finite ? value : Vec(0.0f));
  }
  bool all = __builtin_reduce_or(wrong) == 0;
  for (; i < count; ++i) {
    if (values[i] - values[i] == 0.0f) continue;
    values[i] = 0.0f;
    all = false;
  }
  return all;
}

// Adds the products of the values that ZeroWhatIsNotFinite replaced, only for queries that see them. For other queries
// a weight of zero would not hide such a value: zero times infinity is NaN.
template <typename T>
static void AddWhatIsNotFinite(const TileMask& mask, int64_t dim, const T* cache, const int64_t* offsets,
                               const float* weights, float* out) {
  for (int n = 0; n < 2; ++n) {
    const IntVec first = mask.First(n), visible = mask.Visible(n);
    for (int64_t key = mask.from; key < mask.seen[n]; ++key) {
      const IntVec at = IntVec(static_cast<int>(key)), seen = (first <= at) & (visible > at);
      const T* from = cache + offsets[key];
      float scale = 1.0f;
      if constexpr (kHasScales<T>) scale = ScaleOf(from);
      const Vec weight = Load(weights + key * kStrip + n * kLanes);
      for (int64_t d = 0; d < dim; ++d) {
        const float value = Widen(from[d]) * scale;
        if (value - value == 0.0f) continue;
        float* sum = out + d * kStrip + n * kLanes;
        Store(sum, seen ? Load(sum) + weight * value : Load(sum));
      }
    }
  }
}

template <typename Q, typename T>
static void AttendTile(const PagedAttentionShape& shape, const PagedAttentionArguments& x, const PagedTile& tile,
                       float* scratch) {
  constexpr int64_t kBlockKeys = PagedTileMemory::kBlockKeys, kQueries = PagedTileMemory::kTileQueries;
  // Every query sees a key of the first block, so its maximum is finite from then on.
  static_assert(kQueries <= kBlockKeys && kQueries % kStrip == 0 && kStrip <= PagedTileMemory::kMostStrip);
  const PagedTileMemory s(shape.paged.head_dim);
  const TileQueries queries(shape, tile);
  const int64_t dim = shape.paged.head_dim;
  float *query = scratch + s.query, *sums = scratch + s.out, *maximum = scratch + s.maximum, *sum = scratch + s.sum;
  const float scale = shape.scale * kLog2E;
  for (int64_t i = 0; i < tile.count; i += kStrip) {
    PackRows(
        Smaller(tile.count - i, kStrip), dim,
        [&](int64_t n) { return static_cast<const Q*>(x.query) + queries.at[i + n]; }, scale, query + i * dim);
  }
  __builtin_memset(sums, 0, static_cast<size_t>(kQueries * dim) * sizeof(float));
  for (int64_t i = 0; i < kQueries; ++i) {
    maximum[i] = -__builtin_inff();
    sum[i] = 0.0f;
  }

  const Matrix keys = {scratch + s.keys, dim}, values = {scratch + s.values, dim};
  const int64_t limit = queries.end[tile.count - 1];
  for (int64_t k0 = queries.begin[0]; k0 < limit; k0 += kBlockKeys) {
    const int64_t count = Smaller(limit - k0, kBlockKeys);
    int64_t offsets[kBlockKeys];
    FindTokens(shape.paged, tile.table, tile.head, k0, count, offsets);
    CopyTokens(count, dim, static_cast<const T*>(x.keys), offsets, scratch + s.keys);
    CopyTokens(count, dim, static_cast<const T*>(x.values), offsets, scratch + s.values);
    // The first query's positions end first, and the last query's begin last, so these two tell if all queries see all.
    const bool all_seen = queries.end[0] >= k0 + count && queries.begin[tile.count - 1] <= k0;
    const bool finite = all_seen || ZeroWhatIsNotFinite(count * dim, scratch + s.values);
    for (int64_t i = 0; i < tile.count; i += kStrip) {
      const TileMask mask(queries, i, Smaller(tile.count - i, kStrip), k0, count);
      float* scores = scratch + s.scores;
      Scores<float>(mask, dim, keys, query + i * dim, scores);
      for (int n = 0; n < 2; ++n) {
        if (mask.seen[n] <= mask.from) continue;
        UpdateSoftmax<float>(mask.from, mask.seen[n], dim, scale, scores + n * kLanes, sums + i * dim + n * kLanes,
                             maximum + i + n * kLanes, sum + i + n * kLanes);
      }
      AddWeightedRows<F32Operand>(mask, dim, values, scores, kStrip, sums + i * dim);
      if (!finite) {
        AddWhatIsNotFinite(mask, dim, static_cast<const T*>(x.values), offsets, scores, sums + i * dim);
      }
    }
  }

  for (int64_t i = 0; i < tile.count; i += kStrip) {
    const Vec inverse[2] = {1.0f / Load(sum + i), 1.0f / Load(sum + i + kLanes)};
    UnpackRowsOfStrip(Smaller(tile.count - i, kStrip), dim, sums + i * dim, inverse,
                      [&](int64_t n) { return static_cast<Q*>(x.out) + queries.at[i + n]; });
  }
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_PAGED_PAGED_TILE_H_
