#ifndef BOWLINE_KERNELS_SIGNATURES_EMBEDDING_SIGNATURE_H_
#define BOWLINE_KERNELS_SIGNATURES_EMBEDDING_SIGNATURE_H_

// `gather_rows` and `scatter_add_rows`, checked.

#include <algorithm>
#include <cstdint>

#include "kernels/registry/registry.h"

namespace bowline::kernels {

// table [rows, columns...], ids [tokens...], values [tokens..., columns...], flattened.
struct EmbeddingShape {
  int64_t rows, tokens, columns;
  DType values, table;  // types of the values and of the table
};

// The row that an id names: one out of range counts as the nearest that is there.
inline int64_t RowOf(const EmbeddingShape& shape, int32_t id) { return std::clamp<int64_t>(id, 0, shape.rows - 1); }

// A type of types/computed_types.h or i32, of which there is one.
absl::StatusOr<EmbeddingShape> ParseGatherRows(const Signature& signature);
// f32, or values of bf16 and a table of either. At most 2^31 - 1 tokens.
absl::StatusOr<EmbeddingShape> ParseScatterAddRows(const Signature& signature);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_EMBEDDING_SIGNATURE_H_
