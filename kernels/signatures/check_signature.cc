#include "kernels/signatures/check_signature.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/registry/data_check.h"
#include "kernels/registry/kernel_traits.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

absl::StatusOr<DataCheckShape> Parse(const Signature& signature, std::string_view data, int rank) {
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(
      signature, {{data, Access::kRead, DType::kI32, rank}, {"fault", Access::kReadWrite, DType::kI32, 1}}, {"rows"}));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckShape(signature, 1, "fault", {kFaultWords}, "a place and a value"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t rows, signature.Int("rows"));
  if (rows < 1 || rows > INT32_MAX) {
    return Refuse(signature, absl::StrCat("attribute 'rows' is ", rows, "; it must be 1 to 2^31 - 1"));
  }
  const int64_t count = signature.arguments[0].ElementCount();
  if (count > INT32_MAX - 1) {
    return Refuse(signature, absl::StrCat("more than 2^31 - 2 ", Text(data)));
  }
  return DataCheckShape{count, static_cast<int32_t>(rows)};
}

constexpr absl::string_view kNearest = "; the run counted it as the nearest that is not, and its results are of no use";

std::string DescribeWrongOffset(int32_t place, int32_t value) {
  return absl::StrCat("offset ", place - 1, " of rows in groups is ", value,
                      ", which is below the one before it, or 0, or above the number of rows", kNearest);
}

std::string DescribeWrongId(int32_t place, int32_t value) {
  return absl::StrCat("row number ", place - 1, " is ", value, ", which is below 0 or no row of the table", kNearest);
}

}  // namespace

absl::StatusOr<DataCheckShape> ParseCheckOffsets(const Signature& signature) { return Parse(signature, "offsets", 1); }
absl::StatusOr<DataCheckShape> ParseCheckIds(const Signature& signature) { return Parse(signature, "ids", -1); }

KernelTraits CheckOffsetsTraits() { return {.describe_fault = &DescribeWrongOffset}; }
KernelTraits CheckIdsTraits() { return {.describe_fault = &DescribeWrongId}; }

}  // namespace bowline::kernels
