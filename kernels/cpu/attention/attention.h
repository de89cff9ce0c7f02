#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_H_

// Exact attention without the [queries, keys] matrix, after T. Dao et al., "FlashAttention", NeurIPS 2022: blocks of
// keys stream past a block of queries under the online softmax of M. Milakov and N. Gimelshein (2018), and the backward
// pass recomputes probabilities from the log-sum-exp that the forward pass kept. Memory is linear in the sequence
// length.
//
//   s[i,j] = scale * q[i] . k[j]        for the keys that query i sees: all, or with `causal` j <= i + keys - queries
//   lse[i] = log sum_j exp(s[i,j]),  p[i,j] = exp(s[i,j] - lse[i]),  out[i] = sum_j p[i,j] v[j]
//   dv[j] = sum_i p[i,j] dout[i],  ds[i,j] = p[i,j] (dout[i] . v[j] - dout[i] . out[i])
//   dq[i] = scale sum_j ds[i,j] k[j],  dk[j] = scale sum_i ds[i,j] q[i]
//
// Query head h uses key head h / (heads / kv_heads).

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa/isa.h"

namespace bowline::kernels {

struct AttentionShape {
  int64_t batch, queries, keys, heads, kv_heads, head_dim;
  bool causal;
  float scale;
};

struct AttentionForwardArguments {
  const float *q, *k, *v;
  float *out, *lse;
};

struct AttentionBackwardArguments {
  const float *q, *k, *v, *out, *lse, *dout;
  float *dq, *dk, *dv;
};

// `run` computes units [begin, end) on the calling thread, with its own scratch.
struct AttentionForwardTable {
  size_t (*scratch_floats)(const AttentionShape& shape);
  void (*run)(const AttentionShape& shape, const AttentionForwardArguments& arguments, int64_t begin, int64_t end,
              float* scratch);  // unit = batch * heads + head
};
struct AttentionBackwardTable {
  size_t (*scratch_floats)(const AttentionShape& shape);
  void (*run)(const AttentionShape& shape, const AttentionBackwardArguments& arguments, int64_t begin, int64_t end,
              float* scratch);  // unit = batch * kv_heads + kv_head
};
BOWLINE_DECLARE_ISA_VARIANTS(AttentionForwardTable, kAttentionForward)
BOWLINE_DECLARE_ISA_VARIANTS(AttentionBackwardTable, kAttentionBackward)

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_H_
