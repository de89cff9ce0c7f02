#include "kernels/discrete/kernel_needs.h"

#include "kernels/registry/valid_rows.h"
#include "kernels/signatures/embedding_signature.h"
#include "kernels/signatures/signature_check.h"
#include "kernels/signatures/simple_signatures.h"

namespace bowline::kernels::discrete {

namespace {

bool IsOwnType(DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kI32; }

}  // namespace

absl::StatusOr<std::optional<size_t>> OwnScratch(const Signature& signature) {
  // An attribute that these kernels do not compute is left to those of CPUs.
  if (signature.kernel == "fill" && AttributeOutside(signature, {"value"}) == nullptr) {
    BOWLINE_KERNEL_ASSIGN_OR_RETURN(const FillShape shape, ParseFill(signature));
    return IsOwnType(shape.element) ? std::optional<size_t>(0) : std::nullopt;
  }
  if (signature.kernel == "scatter_add_rows" && AttributeOutside(signature, {kLeavesRowsOut}) == nullptr) {
    BOWLINE_KERNEL_ASSIGN_OR_RETURN(const EmbeddingShape shape, ParseScatterAddRows(signature));
    if (!IsOwnType(shape.values) || !IsOwnType(shape.table)) return std::nullopt;
    // Sums are f32: where the table is not, they have a place of their own.
    return shape.table == DType::kF32 ? 0 : static_cast<size_t>(shape.rows * shape.columns) * sizeof(float);
  }
  return std::nullopt;
}

}  // namespace bowline::kernels::discrete
