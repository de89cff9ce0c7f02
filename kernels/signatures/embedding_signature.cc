#include "kernels/signatures/embedding_signature.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/registry/data_check.h"
#include "kernels/signatures/float_type.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

absl::StatusOr<EmbeddingShape> ParseEmbedding(const Signature& signature, size_t table, size_t ids, size_t values,
                                              std::string_view values_name) {
  const TensorSpec& table_spec = signature.arguments[table];
  if (table_spec.shape.empty()) return Refuse(signature, "the table must have at least one dimension, its rows");
  std::vector<int64_t> expected = signature.arguments[ids].shape;
  expected.insert(expected.end(), table_spec.shape.begin() + 1, table_spec.shape.end());
  BOWLINE_KERNEL_RETURN_IF_ERROR(
      CheckShape(signature, values, values_name, expected, "the shape of 'ids', then that of a row of the table"));
  const int64_t rows = table_spec.shape[0];
  return EmbeddingShape{rows, signature.arguments[ids].ElementCount(), table_spec.ElementCount() / rows,
                        signature.arguments[values].dtype, table_spec.dtype};
}

}  // namespace

absl::StatusOr<EmbeddingShape> ParseGatherRows(const Signature& signature) {
  const bool integers = !signature.arguments.empty() && signature.arguments[0].dtype == DType::kI32;
  const DType element = integers ? DType::kI32 : FloatTypeOf(signature, 0);
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(
      signature,
      {{"table", Access::kRead, element}, {"ids", Access::kRead, DType::kI32}, {"out", Access::kWrite, element}},
      {kInRange}));
  return ParseEmbedding(signature, 0, 1, 2, "out");
}

absl::StatusOr<EmbeddingShape> ParseScatterAddRows(const Signature& signature) {
  const DType update = FloatTypeOf(signature, 0);
  if (!IsTrainedIn(update)) {
    return Refuse(signature, absl::StrCat("does not compute in ", NameOf(update), ", in which nothing is trained"));
  }
  const DType result = SumTypeOf(signature, 2, update);
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(
      signature,
      {{"updates", Access::kRead, update}, {"ids", Access::kRead, DType::kI32}, {"out", Access::kWrite, result}},
      {kInRange}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const EmbeddingShape shape, ParseEmbedding(signature, 2, 1, 0, "updates"));
  if (shape.tokens > INT32_MAX) return Refuse(signature, "'ids' has more than 2^31 - 1 elements");
  return shape;
}

}  // namespace bowline::kernels
