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
  // With kLeavesRowsOut, an argument before `out` counts the valid rows in the first dimension of ids and values.
  // `counts` is the number of its elements, 0 without one; then the number of rows, and the tokens of each.
  int64_t counts = 0, counted_rows = 0, tokens_per_row = 0;
};

// Returns the number of valid tokens, which come first. Reads `count` if the shape has a count.
inline int64_t ValidTokens(const EmbeddingShape& shape, const int32_t* count) {
  return shape.counts == 0 ? shape.tokens : CountedRows(count, shape.counts, shape.counted_rows) * shape.tokens_per_row;
}
// Returns the index of the argument that is the result.
inline size_t OutOf(const EmbeddingShape& shape) { return shape.counts == 0 ? 2 : 3; }

// Returns the row for an id. An id out of range stands for the nearest valid row.
inline int64_t RowOf(const EmbeddingShape& shape, int32_t id) { return std::clamp<int64_t>(id, 0, shape.rows - 1); }

// A type of types/computed_types.h or i32, of which there is one.
absl::StatusOr<EmbeddingShape> ParseGatherRows(const Signature& signature);
// f32, or values of bf16 and a table of either. At most 2^31 - 1 tokens.
absl::StatusOr<EmbeddingShape> ParseScatterAddRows(const Signature& signature);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_EMBEDDING_SIGNATURE_H_
