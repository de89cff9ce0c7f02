#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_H_

// Exact attention without the [queries, keys] matrix, after T. Dao et al., "FlashAttention", NeurIPS 2022: blocks of
// keys stream past a block of queries under the online softmax of M. Milakov and N. Gimelshein (2018), and the backward
// pass recomputes probabilities from the log-sum-exp that the forward pass kept. Memory is linear in the sequence
// length.
//
//   s[i,j] = scale * q[i] . k[j]        for the keys that query i sees: all, or with `causal` j <= i + keys - queries,
//                                       and with a window the last `window` of these alone
//   lse[i] = log sum_j exp(s[i,j]),  p[i,j] = exp(s[i,j] - lse[i]),  out[i] = sum_j p[i,j] v[j]
//   dv[j] = sum_i p[i,j] dout[i],  ds[i,j] = p[i,j] (dout[i] . v[j] - dout[i] . out[i])
//   dq[i] = scale sum_j ds[i,j] k[j],  dk[j] = scale sum_i ds[i,j] q[i]
//
// Query head h uses key head h / (heads / kv_heads). Tensors are f32, bf16 or f16; sums, exponentials and statistics
// are f32, and lse is stored as f32. Products multiply f32, to which elements of 16 bits are widened. With AVX512-BF16,
// tensors of bf16 are multiplied without widening, and p and ds are rounded to bf16 before their products; sums of p
// use the unrounded values, and the scale is applied in f32. The instruction treats subnormal numbers as zero. With
// AMX, tiles of bf16 are multiplied (attention_forward_amx.cc, attention_backward_amx.cc) and p and ds rounded
// likewise, if the workspace and the shape allow it. Otherwise such processors widen, because they multiply pairs of
// bf16 in vectors at half the rate of f32; they multiply pairs only if the workspace does not allow widening either.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/attention/attention_scratch.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/signatures/attention_shape.h"

namespace bowline::kernels {

// Tensors in the element type of the shape.
struct AttentionForwardArguments {
  const void *q, *k, *v;
  void* out;
  float* lse;
};

struct AttentionBackwardArguments {
  const void *q, *k, *v, *out;
  const float* lse;
  const void* dout;
  void *dq, *dk, *dv;
};

// `run` computes the units [begin, end) on the calling thread, which passes its own scratch of scratch_floats. Adjacent
// units cost about the same on average, so that equal numbers of units balance the load.
struct AttentionForwardTable {
  AttentionForwardSizes sizes;
  void (*run)(const AttentionShape& shape, const AttentionForwardArguments& arguments, int64_t begin, int64_t end,
              float* scratch);
};
struct AttentionBackwardTable {
  AttentionBackwardSizes sizes;
  void (*run)(const AttentionShape& shape, BackwardPart part, const AttentionBackwardArguments& arguments,
              int64_t begin, int64_t end, float* scratch);
};
BOWLINE_DECLARE_ISA_VARIANTS(AttentionForwardTable, kAttentionForward)
BOWLINE_DECLARE_ISA_VARIANTS(AttentionBackwardTable, kAttentionBackward)
BOWLINE_DECLARE_BF16_VARIANT(AttentionForwardTable, kAttentionForward)
BOWLINE_DECLARE_BF16_VARIANT(AttentionBackwardTable, kAttentionBackward)
BOWLINE_DECLARE_AMX(AttentionForwardTable, kAttentionForwardBf16)
BOWLINE_DECLARE_AMX(AttentionBackwardTable, kAttentionBackwardBf16)

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_H_
