#include "kernels/signatures/paged_signature.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/registry/kernel_traits.h"
#include "kernels/signatures/float_type.h"
#include "kernels/signatures/signature_check.h"
#include "types/cache_rows.h"

namespace bowline::kernels {
namespace {

constexpr std::string_view kFormat = "format";

// Whether the cache has rows of int8, as the attribute says.
absl::StatusOr<bool> HasInt8Rows(const Signature& signature) {
  const Attribute* attribute = signature.Find(kFormat);
  if (attribute == nullptr) return false;
  if (attribute->ints.empty() && attribute->floats.empty() && attribute->text == kInt8Rows) return true;
  return Refuse(signature, absl::StrCat("attribute '", Text(kFormat), "' is '", absl::Utf8SafeCEscape(attribute->text),
                                        "'; it must be '", Text(kInt8Rows), "', or left out"));
}

// The types of a cache at argument `cache`, and of what is written there or asked for, at argument `own`.
struct PagedTypes {
  bool int8;
  DType cache, own;
};
absl::StatusOr<PagedTypes> ParseTypes(const Signature& signature, size_t cache, size_t own) {
  PagedTypes types;
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(types.int8, HasInt8Rows(signature));
  types.cache = types.int8 ? DType::kU8 : FloatTypeOf(signature, cache);
  types.own = types.int8 ? FloatTypeOf(signature, own) : SumTypeOf(signature, own, types.cache);
  return types;
}

// Positions and numbers of rows are i32.
absl::Status CheckFitsI32(const Signature& signature, std::string_view what, int64_t count) {
  if (count <= INT32_MAX) return absl::OkStatus();
  return Refuse(signature, absl::StrCat("more than 2^31 - 1 ", Text(what)));
}

// The number of sequences, by `rows` at argument `rows`, whose 'lengths' stand behind.
absl::StatusOr<int64_t> ParseSequences(const Signature& signature, size_t rows) {
  const int64_t sequences = signature.arguments[rows].shape[0] - 1;
  if (sequences < 1) return Refuse(signature, "argument 'rows' must have 2 elements or more");
  BOWLINE_KERNEL_RETURN_IF_ERROR(
      CheckShape(signature, rows + 1, "lengths", {sequences}, "one element fewer than 'rows' has"));
  return sequences;
}

// Reads what the cache, at argument `cache`, and the table, two arguments behind `rows`, say.
absl::StatusOr<PagedShape> ParsePaged(const Signature& signature, size_t cache, size_t rows, int64_t tokens) {
  PagedShape shape;
  const std::vector<int64_t>& extents = signature.arguments[cache].shape;
  shape.tokens = tokens;
  shape.blocks = extents[0];
  shape.block_size = extents[1];
  shape.heads = extents[2];
  shape.row = extents[3];
  shape.head_dim = signature.Find(kFormat) == nullptr ? shape.row : shape.row - kInt8ScaleBytes;
  if (shape.head_dim < 1) {
    return Refuse(signature, absl::StrCat("rows of int8 have ", kInt8ScaleBytes, " bytes of a scale, and elements ",
                                          "behind it, but ", shape.row, " bytes"));
  }
  shape.cache = signature.arguments[cache].dtype;
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(shape.sequences, ParseSequences(signature, rows));
  shape.table = signature.arguments[rows + 2].shape[1];
  BOWLINE_KERNEL_RETURN_IF_ERROR(
      CheckShape(signature, rows + 2, "blocks", {shape.sequences, shape.table}, "[sequences, blocks of a sequence]"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckFitsI32(signature, "rows", tokens));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckFitsI32(signature, "blocks of the cache", shape.blocks));
  if (shape.table > INT32_MAX / shape.block_size) {
    return Refuse(signature, absl::StrCat("a table of ", shape.table, " blocks of ", shape.block_size,
                                          " tokens has more than 2^31 - 1 positions"));
  }
  return shape;
}

}  // namespace

absl::StatusOr<SequencePositionsShape> ParseSequencePositions(const Signature& signature) {
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature,
                                                {{"rows", Access::kRead, DType::kI32, 1},
                                                 {"lengths", Access::kRead, DType::kI32, 1},
                                                 {"positions", Access::kWrite, DType::kI32, 1}},
                                                {}));
  SequencePositionsShape shape;
  shape.tokens = signature.arguments[2].shape[0];
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(shape.sequences, ParseSequences(signature, 0));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckFitsI32(signature, "rows", shape.tokens));
  return shape;
}

absl::StatusOr<CacheWriteShape> ParseCacheWrite(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const PagedTypes types, ParseTypes(signature, 0, 1));
  CacheWriteShape shape;
  shape.values = types.own;
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature,
                                                {{"cache", Access::kReadWrite, types.cache, 4},
                                                 {"values", Access::kRead, shape.values, 3},
                                                 {"rows", Access::kRead, DType::kI32, 1},
                                                 {"lengths", Access::kRead, DType::kI32, 1},
                                                 {"blocks", Access::kRead, DType::kI32, 2}},
                                                {kFormat}));
  const int64_t tokens = signature.arguments[1].shape[0];
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(shape.paged, ParsePaged(signature, 0, 2, tokens));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckShape(signature, 1, "values", {tokens, shape.paged.heads, shape.paged.head_dim},
                                            "[rows, heads of the cache, head_dim of the cache]"));
  return shape;
}

absl::StatusOr<PagedAttentionShape> ParsePagedAttention(const Signature& signature) {
  PagedAttentionShape shape;
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const PagedTypes types, ParseTypes(signature, 1, 0));
  shape.query = types.own;
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature,
                                                {{"query", Access::kRead, shape.query, 3},
                                                 {"keys", Access::kRead, types.cache, 4},
                                                 {"values", Access::kRead, types.cache, 4},
                                                 {"rows", Access::kRead, DType::kI32, 1},
                                                 {"lengths", Access::kRead, DType::kI32, 1},
                                                 {"blocks", Access::kRead, DType::kI32, 2},
                                                 {"out", Access::kWrite, shape.query, 3}},
                                                {"scale", "window", kFormat}));
  const std::vector<int64_t>&query = signature.arguments[0].shape, &keys = signature.arguments[1].shape;
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(shape.paged, ParsePaged(signature, 1, 3, query[0]));
  shape.query_heads = query[1];
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckShape(signature, 0, "query", {query[0], query[1], shape.paged.head_dim},
                                            "[rows, heads, head_dim of 'keys']"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(
      CheckShape(signature, 2, "values", {keys[0], keys[1], keys[2], keys[3]}, "the shape of 'keys'"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(
      CheckShape(signature, 6, "out", {query[0], query[1], query[2]}, "the shape of 'query'"));
  if (shape.query_heads % shape.paged.heads != 0) {
    return Refuse(signature, absl::StrCat("the number of query heads, ", shape.query_heads,
                                          ", must be a multiple of that of key heads, ", shape.paged.heads));
  }
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double scale, FiniteFloat(signature, "scale"));
  shape.scale = static_cast<float>(scale);
  shape.window = 0;
  if (signature.Find("window") != nullptr) {
    BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t window, signature.Int("window"));
    if (window < 0) return Refuse(signature, "attribute 'window' must be at least 1, or 0 for none");
    if (window < shape.paged.table * shape.paged.block_size) shape.window = window;
  }
  return shape;
}

KernelTraits SequencePositionsTraits() {
  return {.sequences =
              SequenceOperands{.rows = 0, .lengths = 1, .step = 2, .blocks = std::nullopt, .cache = std::nullopt}};
}
KernelTraits CacheWriteTraits() {
  return {.sequences = SequenceOperands{.rows = 2, .lengths = 3, .step = 1, .blocks = 4, .cache = 0}};
}
KernelTraits PagedAttentionTraits() {
  return {.sequences = SequenceOperands{.rows = 3, .lengths = 4, .step = 0, .blocks = 5, .cache = 1}};
}

}  // namespace bowline::kernels
