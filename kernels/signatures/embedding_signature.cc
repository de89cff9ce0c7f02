#include "kernels/signatures/embedding_signature.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/registry/data_check.h"
#include "kernels/registry/kernel_traits.h"
#include "kernels/signatures/float_type.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

// Arguments `first`, ids and out, with the count between these two where the signature leaves rows out.
absl::StatusOr<EmbeddingShape> ParseEmbedding(const Signature& signature, std::string_view first, DType first_type,
                                              DType out_type, bool gathers) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const bool leaves_out, LeavesRowsOut(signature));
  std::vector<ArgumentRule> rules = {{first, Access::kRead, first_type}, {"ids", Access::kRead, DType::kI32}};
  if (leaves_out) rules.push_back({"count", Access::kRead, DType::kI32, 1});
  rules.push_back({"out", Access::kWrite, out_type});
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature, rules, {kInRange, kLeavesRowsOut}));
  const size_t out = rules.size() - 1, table = gathers ? 0 : out, values = gathers ? out : 0;
  const TensorSpec &table_spec = signature.arguments[table], &ids = signature.arguments[1];
  if (table_spec.shape.empty()) return Refuse(signature, "the table must have at least one dimension, its rows");
  std::vector<int64_t> expected = ids.shape;
  expected.insert(expected.end(), table_spec.shape.begin() + 1, table_spec.shape.end());
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckShape(signature, values, gathers ? "out" : first, expected,
                                            "the shape of 'ids', then that of a row of the table"));
  const int64_t rows = table_spec.shape[0];
  EmbeddingShape shape = {rows, ids.ElementCount(), table_spec.ElementCount() / rows, signature.arguments[values].dtype,
                          table_spec.dtype};
  if (leaves_out) {
    if (ids.shape.empty())
      return Refuse(signature, "'ids' must have at least one dimension, the rows that are counted");
    shape.counts = signature.arguments[2].shape[0];
    shape.counted_rows = ids.shape[0];
    shape.tokens_per_row = shape.tokens / shape.counted_rows;
  }
  return shape;
}

}  // namespace

absl::StatusOr<EmbeddingShape> ParseGatherRows(const Signature& signature) {
  const bool integers = !signature.arguments.empty() && signature.arguments[0].dtype == DType::kI32;
  const DType element = integers ? DType::kI32 : FloatTypeOf(signature, 0);
  return ParseEmbedding(signature, "table", element, element, /*gathers=*/true);
}

absl::StatusOr<EmbeddingShape> ParseScatterAddRows(const Signature& signature) {
  const DType update = FloatTypeOf(signature, 0);
  if (!IsTrainedIn(update)) {
    return Refuse(signature, absl::StrCat("does not compute in ", NameOf(update), ", in which nothing is trained"));
  }
  const size_t out = signature.arguments.empty() ? 0 : signature.arguments.size() - 1;
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(
      const EmbeddingShape shape,
      ParseEmbedding(signature, "updates", update, SumTypeOf(signature, out, update), /*gathers=*/false));
  if (shape.tokens > INT32_MAX) return Refuse(signature, "'ids' has more than 2^31 - 1 elements");
  return shape;
}

KernelTraits GatherRowsTraits() {
  return {.data_check = DataCheck{.kernel = kCheckIds, .argument = 1, .rows = 0, .is_row = true},
          .left_out_rows = ValidRows{.count = 2, .arguments = {1, 3}}};  // of ids and out
}
KernelTraits ScatterAddRowsTraits() {
  return {.data_check = DataCheck{.kernel = kCheckIds, .argument = 1, .rows = kResult, .is_row = true},
          .left_out_rows = ValidRows{.count = 2, .arguments = {0, 1}, .zeros = {0}}};  // of updates and ids
}

}  // namespace bowline::kernels
