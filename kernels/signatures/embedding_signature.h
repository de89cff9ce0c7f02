#ifndef BOWLINE_KERNELS_SIGNATURES_EMBEDDING_SIGNATURE_H_
#define BOWLINE_KERNELS_SIGNATURES_EMBEDDING_SIGNATURE_H_

// `gather_rows` and `scatter_add_rows`, checked.

#include <algorithm>
#include <cstdint>

#include "kernels/registry/registry.h"
#include "kernels/registry/valid_rows.h"

namespace bowline::kernels {

// table [rows, columns...], ids [tokens...], values [tokens..., columns...], flattened.
struct EmbeddingShape {
  int64_t rows, tokens, columns;
  DType values, table;  // types of the values and of the table
  // With kLeavesRowsOut a count of valid rows, an argument in front of `out`: the first dimension of ids and values.
  // Elements of the count, 0 where there is none; rows, and tokens of each.
  int64_t counts = 0, counted_rows = 0, tokens_per_row = 0;
};

// How many tokens come first that are valid; `count` is read where the shape has one.
inline int64_t ValidTokens(const EmbeddingShape& shape, const int32_t* count) {
  return shape.counts == 0 ? shape.tokens : CountedRows(count, shape.counts, shape.counted_rows) * shape.tokens_per_row;
}
// The argument that is the result.
inline size_t OutOf(const EmbeddingShape& shape) { return shape.counts == 0 ? 2 : 3; }

// The row that an id names: one out of range counts as the nearest that is there.
inline int64_t RowOf(const EmbeddingShape& shape, int32_t id) { return std::clamp<int64_t>(id, 0, shape.rows - 1); }

// A type of types/computed_types.h or i32, of which there is one.
absl::StatusOr<EmbeddingShape> ParseGatherRows(const Signature& signature);
// f32, or values of bf16 and a table of either. At most 2^31 - 1 tokens.
absl::StatusOr<EmbeddingShape> ParseScatterAddRows(const Signature& signature);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_EMBEDDING_SIGNATURE_H_
