#include "kernels/signatures/check_signature.h"

#include "absl/strings/str_cat.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {

absl::StatusOr<CheckOffsetsShape> ParseCheckOffsets(const Signature& signature) {
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(
      signature, {{"offsets", Access::kRead, DType::kI32, 1}, {"fault", Access::kReadWrite, DType::kI32, 1}},
      {"rows"}));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckShape(signature, 1, "fault", {1}, "one word"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t rows, signature.Int("rows"));
  if (rows < 1 || rows > INT32_MAX) {
    return Refuse(signature, absl::StrCat("attribute 'rows' is ", rows, "; it must be 1 to 2^31 - 1"));
  }
  if (signature.arguments[0].shape[0] > INT32_MAX - 1) return Refuse(signature, "more than 2^31 - 2 offsets");
  return CheckOffsetsShape{signature.arguments[0].shape[0], static_cast<int32_t>(rows)};
}

}  // namespace bowline::kernels
