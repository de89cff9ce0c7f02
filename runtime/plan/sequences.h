#ifndef BOWLINE_RUNTIME_PLAN_SEQUENCES_H_
#define BOWLINE_RUNTIME_PLAN_SEQUENCES_H_

// The promise of callers about the three inputs of a step that say where sequences and their blocks are
// (Sequences in plan.fbs). Sessions check it, the checker takes it for granted, and verification draws inputs that keep
// it.
//
// A step computes rows of R sequences side by side. Sequence r has the rows [rows[r], rows[r + 1]), which are its last
// tokens, and lengths[r] tokens after the step, of which token p is at place p mod B of block blocks[r, p / B], where B
// is block_tokens.
//
// - rows[0] is 0, rows never decrease, and the last one is at most `tokens`.
// - lengths[r] is at least the number of the sequence's rows, and at most M * B.
// - For a sequence with rows: blocks that its length needs are in [1, block_count). One that a row is written to is in
// no
//   other place of its table, and in no table of another sequence with rows.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace bowline {

struct SequenceSizes {
  int64_t sequences = 0;     // R
  int64_t listed = 0;        // M
  int64_t tokens = 0;        // the most rows
  int64_t block_tokens = 0;  // B
  int64_t block_count = 0;   // with block 0, which holds nothing
};

// kInvalidArgument that says which element breaks the promise. The spans have R + 1, R and R * M elements.
absl::Status CheckSequences(const SequenceSizes& sizes, absl::Span<const int32_t> rows,
                            absl::Span<const int32_t> lengths, absl::Span<const int32_t> blocks);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_SEQUENCES_H_
