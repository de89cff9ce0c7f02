#ifndef BOWLINE_KERNELS_SIGNATURES_PAGED_SHAPE_H_
#define BOWLINE_KERNELS_SIGNATURES_PAGED_SHAPE_H_

// Apart from the code that reads them off a signature, so that sources compiled for an instruction set may include it.

#include <cstdint>

#include "types/element_type.h"

namespace bowline::kernels {

// A cache of keys or values, [blocks, block_size, heads, row], and the batch of sequences that use it:
// `tokens` rows side by side, of `sequences` sequences, each with a table of `table` blocks.
struct PagedShape {
  int64_t tokens, sequences, table;
  int64_t blocks, block_size, heads, head_dim;
  int64_t row;        // elements that a head of a token has in the cache: head_dim, or the bytes of a row of int8
  ElementType cache;  // one of types/computed_types.h, or u8: rows of int8 (types/cache_rows.h)
};

struct SequencePositionsShape {
  int64_t tokens, sequences;
};

struct CacheWriteShape {
  PagedShape paged;
  ElementType values;  // the cache's type, or f32; one of types/computed_types.h where the cache has rows of int8
};

struct PagedAttentionShape {
  PagedShape paged;
  int64_t query_heads;  // a multiple of paged.heads
  ElementType query;    // as `values`
  float scale;
  int64_t window;  // 0 where it hides nothing, else 1 to table * block_size - 1
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_PAGED_SHAPE_H_
