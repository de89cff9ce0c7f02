#ifndef BOWLINE_KERNELS_CPU_PAGED_PAGED_SEQUENCES_H_
#define BOWLINE_KERNELS_CPU_PAGED_PAGED_SEQUENCES_H_

// Sequences in the rows of a batch, one row per token. Their keys and values lie in blocks of a cache. Three arrays of
// i32 locate them:
//
//   rows [R+1]     rows rows[r] <= t < rows[r+1] belong to sequence r; the array ascends from 0
//   lengths [R]    the number of tokens of sequence r in the cache after this step; 0 for an unused sequence
//   blocks [R, M]  the blocks of the cache that hold the sequence's tokens, in order; block 0 is the null block
//
// Row t has position lengths[r] - (rows[r+1] - rows[r]) + (t - rows[r]). The token at position p lies at
// [blocks[r, p / S], p % S] of a cache [N, S, K, D], or of int8 rows, bytes [N, S, K, D + 4] (types/cache_rows.h).
//
// All three arrays are data. No kernel of this folder accesses memory outside of its arguments, whatever they hold:
//   - Kernels clamp each number of `rows` to between the number before it (0 before the first) and the number of rows.
//     Rows before the first number and from the last number on belong to no sequence.
//   - Positions below 0: sequence_positions returns 0, cache_write writes nothing, paged_attention sees position 0.
//   - Positions beyond the table: cache_write writes nothing, paged_attention sees up to the table's last position.
//   - Blocks outside of the cache: cache_write writes nothing, paged_attention reads the nearest block.
//   - Block 0, the null block: cache_write writes nothing, paged_attention
//     reads it like any other block.
//   - If one or two tables map two rows to one place of the cache, the place afterwards holds either row, or parts of
//     both.

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "kernels/cpu/grouped/grouped_shape.h"

namespace bowline::kernels {

// The arrays above, as arguments of a kernel.
struct PagedIndices {
  const int32_t *rows, *lengths, *blocks;
};

// `count` rows of a sequence, from row `begin` on. `position` is the position of the first row; it may be negative.
struct SequenceRows {
  int64_t sequence, begin, count, position;
};

// Calls `body` for each sequence that has rows, in ascending order.
inline void ForEachSequence(const int32_t* rows, const int32_t* lengths, int64_t sequences, int64_t tokens,
                            absl::FunctionRef<void(SequenceRows)> body) {
  ForEachGroup(rows, sequences, tokens, [&](RowGroup group) {
    if (group.count > 0) body({group.group, group.begin, group.count, lengths[group.group] - group.count});
  });
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PAGED_PAGED_SEQUENCES_H_
