#ifndef BOWLINE_KERNELS_CPU_PAGED_PAGED_BLOCKS_H_
#define BOWLINE_KERNELS_CPU_PAGED_PAGED_BLOCKS_H_

// Tokens of a sequence in the blocks of a cache. Only for *_isa.cc files.

#include "kernels/cpu/attention/attention_pack.h"
#include "kernels/signatures/paged_shape.h"

namespace bowline::kernels::BOWLINE_ISA {

// Where the elements of a head of the tokens at positions [begin, begin + count) begin in the cache, in elements. A
// block outside of the cache counts as the nearest.
static void FindTokens(const PagedShape& shape, const int32_t* table, int64_t head, int64_t begin, int64_t count,
                       int64_t* offsets) {
  const int64_t token = shape.heads * shape.head_dim;
  int64_t index = begin / shape.block_size, inside = begin % shape.block_size;
  for (int64_t i = 0; i < count; ++index, inside = 0) {
    const int64_t block = Smaller(Larger(table[index], 0), shape.blocks - 1);
    const int64_t first = (block * shape.block_size + inside) * token + head * shape.head_dim;
    const int64_t here = Smaller(count - i, shape.block_size - inside);
    for (int64_t n = 0; n < here; ++n) offsets[i + n] = first + n * token;
    i += here;
  }
}

// Rows of f32, dense, of the tokens at `offsets`.
template <typename T>
static void CopyTokens(int64_t count, int64_t head_dim, const T* cache, const int64_t* offsets, float* rows) {
  for (int64_t i = 0; i < count; ++i, rows += head_dim) {
    const T* from = cache + offsets[i];
    int64_t d = 0;
    for (; d + kLanes <= head_dim; d += kLanes) Store(rows + d, LoadWide<kLanes>(from + d));
    for (; d < head_dim; ++d) rows[d] = Widen(from[d]);
  }
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_PAGED_PAGED_BLOCKS_H_
