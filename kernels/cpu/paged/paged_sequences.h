#ifndef BOWLINE_KERNELS_CPU_PAGED_PAGED_SEQUENCES_H_
#define BOWLINE_KERNELS_CPU_PAGED_PAGED_SEQUENCES_H_

// Sequences side by side in the rows of a batch, one row a token, whose keys and values lie in blocks of a cache. Three
// arrays of i32 say where things are:
//
//   rows [R+1]     the rows rows[r] <= t < rows[r+1] are of sequence r; they ascend from 0
//   lengths [R]    tokens of sequence r that the cache holds after this step; 0 for one that is not used
//   blocks [R, M]  the blocks of the cache that hold the sequence's tokens in order; block 0 is null
//
// Row t has the position lengths[r] - (rows[r+1] - rows[r]) + (t - rows[r]), and the token at position p lies at
// [blocks[r, p / S], p % S] of a cache [N, S, K, D], or of bytes [N, S, K, D + 4] in rows of int8 (types/cache_rows.h).
//
// All three are data: whatever they hold, no kernel of this folder leaves its arguments.
//   - Each number of `rows` counts as one between the one before it (0 before the first) and the number of rows. Rows
//     before the first number and from the last one on are of no sequence.
//   - Positions below 0: sequence_positions says 0, cache_write writes nothing, paged_attention sees position 0 alone.
//   - Positions behind the table: cache_write writes nothing, paged_attention sees up to the table's last position.
//   - Blocks outside of the cache: cache_write writes nothing, paged_attention reads the nearest block. It reads block
//   0
//     as any other.
//   - Two rows that one table, or two tables, send to one place of the cache: either of them, or parts of both, are
//     there afterwards.

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "kernels/cpu/grouped/grouped_shape.h"

namespace bowline::kernels {

// The arrays, as arguments of a kernel.
struct PagedIndices {
  const int32_t *rows, *lengths, *blocks;
};

// `count` rows of a sequence from `begin` on, the first of which has the position `position`, which may be negative.
struct SequenceRows {
  int64_t sequence, begin, count, position;
};

// Calls `body` with each sequence that has rows, in order.
inline void ForEachSequence(const int32_t* rows, const int32_t* lengths, int64_t sequences, int64_t tokens,
                            absl::FunctionRef<void(SequenceRows)> body) {
  ForEachGroup(rows, sequences, tokens, [&](RowGroup group) {
    if (group.count > 0) body({group.group, group.begin, group.count, lengths[group.group] - group.count});
  });
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PAGED_PAGED_SEQUENCES_H_
