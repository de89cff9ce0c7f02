#ifndef BOWLINE_KERNELS_CUDA_ATTENTION_GEOMETRY_H_
#define BOWLINE_KERNELS_CUDA_ATTENTION_GEOMETRY_H_

// The keys that each query sees, and the offsets of heads, for all attention functions.

#include "kernels/cuda/device.h"

// The parameters that all of them end with, and the struct that they make.
#define BOWLINE_ATTENTION_PARAMETERS                                                                                \
  int64_t queries, int64_t keys, int64_t heads, int64_t kv_heads, int64_t head_dim, int32_t causal, int64_t window, \
      float scale
#define BOWLINE_ATTENTION_SIZE(Index)                                                              \
  ::bowline::device::AttentionSize<Index> {                                                        \
    static_cast<Index>(queries), static_cast<Index>(keys), heads, kv_heads, head_dim, causal != 0, \
        static_cast<Index>(window), scale                                                          \
  }

namespace bowline::device {

// Index is int64_t, or int32_t where there are at most 2^24 queries and keys.
template <typename Index>
struct RangeOf {
  Index begin, end;
  BOWLINE_DEVICE bool Has(Index i) const { return i >= begin && i < end; }
};

template <typename Index>
struct AttentionSize {
  using Range = RangeOf<Index>;

  Index queries, keys;
  int64_t heads, kv_heads, head_dim;
  bool causal;
  Index window;  // 0: none
  float scale;

  BOWLINE_DEVICE int64_t QueryStride() const { return heads * head_dim; }
  BOWLINE_DEVICE int64_t KeyStride() const { return kv_heads * head_dim; }
  // The offset in elements of the first query of a head, and of the first key of a key head.
  BOWLINE_DEVICE int64_t QueryOffset(int64_t batch, int64_t head) const {
    return (batch * queries * heads + head) * head_dim;
  }
  BOWLINE_DEVICE int64_t KeyOffset(int64_t batch, int64_t kv_head) const {
    return (batch * keys * kv_heads + kv_head) * head_dim;
  }
  // The keys that the query sees.
  BOWLINE_DEVICE Range KeysOf(Index query) const {
    const Index end = causal ? query + keys - queries + 1 : keys;
    return {window > 0 ? Larger(Index{0}, end - window) : Index{0}, end};
  }
  // The keys that some of queries [begin, end) see; the bounds rise with the query.
  BOWLINE_DEVICE Range KeysOf(Index begin, Index end) const { return {KeysOf(begin).begin, KeysOf(end - 1).end}; }
  // The queries that some of keys [begin, end) are seen by.
  BOWLINE_DEVICE Range QueriesOf(Index begin, Index end) const {
    const Index shift = keys - queries;
    return {causal ? Larger(Index{0}, begin - shift) : Index{0},
            window > 0 ? Smaller(queries, end - 1 - shift + window) : queries};
  }
};

// The block of rows (`place`) and the head that block `index` of the grid computes. `heads` heads have `blocks` blocks
// of rows each, whose places are ordered by their work, most first. All heads take a place before any takes the next
// one, so that little is left for the last blocks of the grid; but only so many heads together that the `bytes` of
// each, which stream past its rows, stay in a cache.
struct BlockOrder {
  int32_t place, head;
  BOWLINE_DEVICE BlockOrder(int32_t index, int32_t heads, int32_t blocks, int64_t bytes) {
    constexpr int64_t kCacheBytes = int64_t{32} << 20;
    const int32_t most = static_cast<int32_t>(Clamped(kCacheBytes / bytes, int64_t{1}, int64_t{heads}));
    const int32_t section = index / (most * blocks), within = index - section * (most * blocks);
    const int32_t together = Smaller(most, heads - section * most);
    place = within / together;
    head = section * most + (within - place * together);
  }
};
BOWLINE_DEVICE BlockOrder OrderOfBlock(int32_t blocks, int64_t bytes) {
  return {static_cast<int32_t>(blockIdx.x), static_cast<int32_t>(gridDim.x) / blocks, blocks, bytes};
}

using WideSize = AttentionSize<int64_t>;
using NarrowSize = AttentionSize<int32_t>;

}  // namespace bowline::device

#endif  // BOWLINE_KERNELS_CUDA_ATTENTION_GEOMETRY_H_
