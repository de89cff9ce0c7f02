#ifndef BOWLINE_KERNELS_CUDA_ATTENTION_GEOMETRY_H_
#define BOWLINE_KERNELS_CUDA_ATTENTION_GEOMETRY_H_

// Which queries see which keys, and where heads lie, for all attention functions.

#include "kernels/cuda/device.h"

// The parameters that all of them end with, and the struct that they make.
#define BOWLINE_ATTENTION_PARAMETERS                                                                                \
  int64_t queries, int64_t keys, int64_t heads, int64_t kv_heads, int64_t head_dim, int32_t causal, int64_t window, \
      float scale
#define BOWLINE_ATTENTION_SIZE \
  ::bowline::device::AttentionSize { queries, keys, heads, kv_heads, head_dim, causal != 0, window, scale }

namespace bowline::device {

struct Range {
  int64_t begin, end;
  BOWLINE_DEVICE bool Has(int64_t i) const { return i >= begin && i < end; }
};

struct AttentionSize {
  int64_t queries, keys, heads, kv_heads, head_dim;
  bool causal;
  int64_t window;  // 0: none
  float scale;

  BOWLINE_DEVICE int64_t QueryStride() const { return heads * head_dim; }
  BOWLINE_DEVICE int64_t KeyStride() const { return kv_heads * head_dim; }
  // Of the first query of a head, and of the first key of a key head.
  BOWLINE_DEVICE int64_t QueryOffset(int64_t batch, int64_t head) const {
    return (batch * queries * heads + head) * head_dim;
  }
  BOWLINE_DEVICE int64_t KeyOffset(int64_t batch, int64_t kv_head) const {
    return (batch * keys * kv_heads + kv_head) * head_dim;
  }
  // The keys that the query sees.
  BOWLINE_DEVICE Range KeysOf(int64_t query) const {
    const int64_t end = causal ? query + keys - queries + 1 : keys;
    return {window > 0 ? Larger(0, end - window) : 0, end};
  }
  // The keys that some of queries [begin, end) see; the bounds rise with the query.
  BOWLINE_DEVICE Range KeysOf(int64_t begin, int64_t end) const { return {KeysOf(begin).begin, KeysOf(end - 1).end}; }
  // The queries that some of keys [begin, end) are seen by.
  BOWLINE_DEVICE Range QueriesOf(int64_t begin, int64_t end) const {
    const int64_t shift = keys - queries;
    return {causal ? Larger(0, begin - shift) : 0, window > 0 ? Smaller(queries, end - 1 - shift + window) : queries};
  }
};

}  // namespace bowline::device

#endif  // BOWLINE_KERNELS_CUDA_ATTENTION_GEOMETRY_H_
