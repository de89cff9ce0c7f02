#include "kernels/signatures/simple_signatures.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/registry/kernel_traits.h"
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

namespace {

// The frequencies that turn `low_turns` times within the original number of positions, and fewer times, are divided by
// the factor, those of `high_turns` and more are kept. Without these all are divided.
absl::Status ReadScaling(const Signature& signature, RopeAnglesShape& shape) {
  const bool is_by_turns = signature.Find("original_positions") != nullptr;
  for (const std::string_view other : {"low_turns", "high_turns"}) {
    if ((signature.Find(other) != nullptr) != is_by_turns) {
      return Refuse(signature, "'original_positions', 'low_turns' and 'high_turns' need each other");
    }
  }
  if (signature.Find("factor") == nullptr) {
    return is_by_turns ? Refuse(signature, "attribute 'original_positions' needs 'factor'") : absl::OkStatus();
  }
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double factor, FiniteFloat(signature, "factor"));
  if (factor < 1) return Refuse(signature, "attribute 'factor' must be at least 1");
  shape.rate = 1 / factor;
  if (!is_by_turns) return absl::OkStatus();
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t original, signature.Int("original_positions"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double low, FiniteFloat(signature, "low_turns"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double high, FiniteFloat(signature, "high_turns"));
  if (original < 1) return Refuse(signature, "attribute 'original_positions' must be at least 1");
  if (low <= 0 || high <= low) return Refuse(signature, "it must be that 0 < 'low_turns' < 'high_turns'");
  constexpr double kTurn = 6.283185307179586;
  shape.slope = static_cast<double>(original) / kTurn / (high - low);
  shape.offset = low / (high - low);
  if (!std::isfinite(shape.slope) || !std::isfinite(shape.offset)) {
    return Refuse(signature, "attributes 'low_turns' and 'high_turns' are too close to each other");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RopeAnglesShape> ParseRopeAngles(const Signature& signature) {
  const DType element = FloatTypeOf(signature, 1);
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature,
                                                {{"positions", Access::kRead, DType::kI32, 1},
                                                 {"cos", Access::kWrite, element, 2},
                                                 {"sin", Access::kWrite, element, 2}},
                                                {"theta", "factor", "original_positions", "low_turns", "high_turns"}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double theta, FiniteFloat(signature, "theta"));
  if (theta <= 0) return Refuse(signature, "attribute 'theta' must be positive");
  const int64_t positions = signature.arguments[0].shape[0], half = signature.arguments[1].shape[1];
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckShape(signature, 1, "cos", {positions, half}, "[positions, head_dim / 2]"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckShape(signature, 2, "sin", {positions, half}, "the shape of 'cos'"));
  RopeAnglesShape shape{element, theta, positions, half};
  BOWLINE_KERNEL_RETURN_IF_ERROR(ReadScaling(signature, shape));
  return shape;
}

KernelTraits FillTraits() { return {}; }
KernelTraits RopeAnglesTraits() { return {}; }

}  // namespace bowline::kernels
