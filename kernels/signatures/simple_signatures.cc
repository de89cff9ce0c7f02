#include "kernels/signatures/simple_signatures.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/signatures/float_type.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {

absl::StatusOr<FillShape> ParseFill(const Signature& signature) {
  const bool integer = signature.arguments.size() == 1 && signature.arguments[0].dtype == DType::kI32;
  const DType dtype = integer ? DType::kI32 : FloatTypeOf(signature, 0);
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature, {{"out", Access::kWrite, dtype}}, {"value"}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double value, signature.Float("value"));
  if (integer && (!(value >= INT32_MIN && value <= INT32_MAX) || value != std::trunc(value))) {
    return Refuse(signature, absl::StrCat("attribute 'value' is ", value, ", which is not an i32"));
  }
  return FillShape{dtype, value, signature.arguments[0].ElementCount()};
}

absl::StatusOr<RopeAnglesShape> ParseRopeAngles(const Signature& signature) {
  const DType element = FloatTypeOf(signature, 1);
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature,
                                                {{"positions", Access::kRead, DType::kI32, 1},
                                                 {"cos", Access::kWrite, element, 2},
                                                 {"sin", Access::kWrite, element, 2}},
                                                {"theta"}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double theta, FiniteFloat(signature, "theta"));
  if (theta <= 0) return Refuse(signature, "attribute 'theta' must be positive");
  const int64_t positions = signature.arguments[0].shape[0], half = signature.arguments[1].shape[1];
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckShape(signature, 1, "cos", {positions, half}, "[positions, head_dim / 2]"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckShape(signature, 2, "sin", {positions, half}, "the shape of 'cos'"));
  return RopeAnglesShape{element, theta, positions, half};
}

}  // namespace bowline::kernels
