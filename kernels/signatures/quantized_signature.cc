#include "kernels/signatures/quantized_signature.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/registry/kernel_traits.h"
#include "kernels/signatures/float_type.h"
#include "kernels/signatures/signature_check.h"
#include "types/block_formats.h"

namespace bowline::kernels {
namespace {

constexpr std::string_view kFormat = "format";

absl::StatusOr<ElementType> ParseFormat(const Signature& signature) {
  const Attribute* attribute = signature.Find(kFormat);
  const bool is_text = attribute != nullptr && attribute->ints.empty() && attribute->floats.empty();
  if (is_text) {
    if (const auto format = BlockFormatFromName(attribute->text); format.has_value()) return *format;
  }
  const std::string found = is_text ? absl::StrCat(" is '", absl::Utf8SafeCEscape(attribute->text), "'; it")
                            : attribute == nullptr ? " is missing; it"
                                                   : "";
  return Refuse(signature, absl::StrCat("attribute '", Text(kFormat), "'", found,
                                        " must be a format of blocks: ", BlockFormatNames()));
}

// Argument `index` of rank 3, whose extents were checked.
absl::StatusOr<QuantizedMatrix> ParseMatrix(const Signature& signature, size_t index, std::string_view name) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const ElementType format, ParseFormat(signature));
  const std::vector<int64_t>& shape = signature.arguments[index].shape;
  const ElementTypeInfo& info = InfoOf(format);
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckShape(signature, index, name, {shape[0], shape[1], info.block_bytes},
                                            "[rows, blocks of a row, bytes of a block of the format]"));
  return QuantizedMatrix{format, shape[0], shape[1] * info.block_elements, shape[1] * info.block_bytes};
}

// The type of a floating-point argument, of those that are computed with blocks.
absl::StatusOr<DType> ParseFloat(const Signature& signature, size_t index) {
  const DType type = FloatTypeOf(signature, index);
  if (type == DType::kF32 || type == DType::kBF16) return type;
  return Refuse(signature, absl::StrCat("does not compute in ", NameOf(type), "; only f32 and bf16 are supported"));
}

}  // namespace

absl::StatusOr<QuantizedMatmulShape> ParseQuantizedMatmul(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const DType x, ParseFloat(signature, 0));
  const DType out = SumTypeOf(signature, 2, x);
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(
      signature,
      {{"x", Access::kRead, x, 2}, {"weights", Access::kRead, DType::kU8, 3}, {"out", Access::kWrite, out, 2}},
      {kFormat}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const QuantizedMatrix weights, ParseMatrix(signature, 1, "weights"));
  const int64_t m = signature.arguments[0].shape[0];
  BOWLINE_KERNEL_RETURN_IF_ERROR(
      CheckShape(signature, 0, "x", {m, weights.columns}, "[rows, elements of a row of 'weights']"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(
      CheckShape(signature, 2, "out", {m, weights.rows}, "[rows of 'x', rows of 'weights']"));
  return QuantizedMatmulShape{weights, m, x, out};
}

absl::StatusOr<QuantizedGatherShape> ParseQuantizedGather(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const DType out, ParseFloat(signature, 2));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(
      signature,
      {{"table", Access::kRead, DType::kU8, 3}, {"ids", Access::kRead, DType::kI32}, {"out", Access::kWrite, out}},
      {kFormat}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const QuantizedMatrix table, ParseMatrix(signature, 0, "table"));
  const TensorSpec& ids = signature.arguments[1];
  std::vector<int64_t> expected = ids.shape;
  expected.push_back(table.columns);
  BOWLINE_KERNEL_RETURN_IF_ERROR(
      CheckShape(signature, 2, "out", expected, "the shape of 'ids', then the elements of a row of 'table'"));
  return QuantizedGatherShape{table, ids.ElementCount(), out};
}

KernelTraits QuantizedMatmulTraits() { return {}; }
KernelTraits QuantizedGatherTraits() {
  return {.data_check = DataCheck{.kernel = kCheckIds, .argument = 1, .rows = 0, .is_row = true}};
}

}  // namespace bowline::kernels
