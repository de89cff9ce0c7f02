#ifndef BOWLINE_KERNELS_CPU_EMBEDDING_EMBEDDING_SHAPE_H_
#define BOWLINE_KERNELS_CPU_EMBEDDING_EMBEDDING_SHAPE_H_

#include <vector>

#include "kernels/registry/signature_check.h"

namespace bowline::kernels {

// table [rows, columns...], ids [tokens...], values [tokens..., columns...], flattened.
struct EmbeddingShape {
  int64_t rows, tokens, columns;
};

inline absl::StatusOr<EmbeddingShape> ParseEmbedding(const Signature& signature, size_t table, size_t ids,
                                                     size_t values, std::string_view values_name) {
  const TensorSpec& table_spec = signature.arguments[table];
  if (table_spec.shape.empty()) return Refuse(signature, "the table must have at least one dimension, its rows");
  std::vector<int64_t> expected = signature.arguments[ids].shape;
  expected.insert(expected.end(), table_spec.shape.begin() + 1, table_spec.shape.end());
  BOWLINE_KERNEL_RETURN_IF_ERROR(
      CheckShape(signature, values, values_name, expected, "the shape of 'ids', then that of a row of the table"));
  const int64_t rows = table_spec.shape[0];
  return EmbeddingShape{rows, signature.arguments[ids].ElementCount(), table_spec.ElementCount() / rows};
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_EMBEDDING_EMBEDDING_SHAPE_H_
