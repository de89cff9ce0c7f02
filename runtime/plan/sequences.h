#ifndef BOWLINE_RUNTIME_PLAN_SEQUENCES_H_
#define BOWLINE_RUNTIME_PLAN_SEQUENCES_H_

// The promise that a caller makes about the three inputs of a step that say where sequences and their blocks are
// (Sequences in plan.fbs). Sessions check the promise, the checker relies on it, and verification draws inputs that
// keep it.
//
// A step computes rows of R sequences side by side, one row per token. Sequence r has the rows [rows[r], rows[r + 1]),
// which are its last tokens. After the step it has lengths[r] tokens. Its token p is at place p mod B of the block
// blocks[r, p/B], where B is block_tokens.
//
// - rows[0] is 0, rows never decrease, and the last element of rows is at most `tokens`.
// - lengths[r] is at least the number of the sequence's rows, and at most M * B.
// - If a sequence has rows, the blocks that its length needs are in [1, block_count). A block that one of its rows is
//   written into is listed once in the sequence's table, and is not listed in the table of any other sequence that has
//   rows.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace bowline {

struct SequenceSizes {
  int64_t sequences = 0;     // R
  int64_t listed = 0;        // M, blocks in each sequence's table
  int64_t tokens = 0;        // the most rows of a step
  int64_t block_tokens = 0;  // B
  int64_t block_count = 0;   // includes block 0, which holds no tokens
};

// Returns kInvalidArgument, naming the element that breaks the promise. The spans have R + 1, R and R * M elements.
absl::Status CheckSequences(const SequenceSizes& sizes, absl::Span<const int32_t> rows,
                            absl::Span<const int32_t> lengths, absl::Span<const int32_t> blocks);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_SEQUENCES_H_
