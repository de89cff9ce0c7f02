#ifndef BOWLINE_KERNELS_CPU_PAGED_PAGED_BLOCKS_H_
#define BOWLINE_KERNELS_CPU_PAGED_PAGED_BLOCKS_H_

// Finds and reads the tokens of a sequence in the blocks of a cache. Only for *_isa.cc files.

#include "kernels/cpu/attention/attention_pack.h"
#include "kernels/signatures/paged_shape.h"
#include "types/cache_rows.h"

namespace bowline::kernels::BOWLINE_ISA {

// An element of a cache row of int8. The row's scale, an f32, lies directly before the first element.
struct Int8 {
  int8_t value;
};
template <typename T>
inline constexpr bool kHasScales = false;
template <>
inline constexpr bool kHasScales<Int8> = true;

using kernels::Widen;
BOWLINE_ALWAYS_INLINE float Widen(Int8 element) { return element.value; }
template <int kCount>
BOWLINE_ALWAYS_INLINE FloatVec<kCount> LoadWide(const Int8* p) {
  using Bytes = int8_t __attribute__((ext_vector_type(kCount)));
  using Wide = int32_t __attribute__((ext_vector_type(kCount)));
  Bytes bytes;
  __builtin_memcpy(&bytes, p, sizeof(bytes));
  return __builtin_convertvector(__builtin_convertvector(bytes, Wide), FloatVec<kCount>);
}
// The scale of the row whose first element is at `row`.
BOWLINE_ALWAYS_INLINE float ScaleOf(const Int8* row) {
  float scale;
  __builtin_memcpy(&scale, row - kInt8ScaleBytes, sizeof(scale));
  return scale;
}

// Writes to `offsets` where the elements of `head` begin in the cache, in elements, for the tokens at positions [begin,
// begin + count). If the table has a block outside of the cache, it uses the nearest block of the cache.
static void FindTokens(const PagedShape& shape, const int32_t* table, int64_t head, int64_t begin, int64_t count,
                       int64_t* offsets) {
  const int64_t token = shape.heads * shape.row, own = (head + 1) * shape.row - shape.head_dim;
  int64_t index = begin / shape.block_size, inside = begin % shape.block_size;
  for (int64_t i = 0; i < count; ++index, inside = 0) {
    const int64_t block = Smaller(Larger(table[index], 0), shape.blocks - 1);
    const int64_t first = (block * shape.block_size + inside) * token + own;
    const int64_t here = Smaller(count - i, shape.block_size - inside);
    for (int64_t n = 0; n < here; ++n) offsets[i + n] = first + n * token;
    i += here;
  }
}

// Copies the tokens at `offsets` to `rows` as f32, with scales applied, head_dim floats per token.
template <typename T>
static void CopyTokens(int64_t count, int64_t head_dim, const T* cache, const int64_t* offsets, float* rows) {
  for (int64_t i = 0; i < count; ++i, rows += head_dim) {
    const T* from = cache + offsets[i];
    float scale = 1.0f;
    if constexpr (kHasScales<T>) scale = ScaleOf(from);
    int64_t d = 0;
    for (; d + kLanes <= head_dim; d += kLanes) Store(rows + d, LoadWide<kLanes>(from + d) * scale);
    for (; d < head_dim; ++d) rows[d] = Widen(from[d]) * scale;
  }
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_PAGED_PAGED_BLOCKS_H_
