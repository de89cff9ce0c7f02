#ifndef BOWLINE_KERNELS_SIGNATURES_ATTENTION_SHAPE_H_
#define BOWLINE_KERNELS_SIGNATURES_ATTENTION_SHAPE_H_

// Separate from the code that reads it off a signature, so that sources compiled for an instruction set may include it.

#include <cstdint>

#include "types/element_type.h"

namespace bowline::kernels {

struct AttentionShape {
  int64_t batch, queries, keys, heads, kv_heads, head_dim;
  bool causal;
  ElementType element;  // one of types/computed_types.h
  float scale;
  int64_t window;  // 0 where it hides nothing, else 1 to keys - 1 with `causal`
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_ATTENTION_SHAPE_H_
