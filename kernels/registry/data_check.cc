#include "kernels/registry/data_check.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace bowline::kernels {
namespace {

constexpr std::string_view kCheckOffsets = "check_offsets", kCheckIds = "check_ids";
constexpr DataCheck kOffsets = {kCheckOffsets, 2, 0, false};
constexpr std::array<std::pair<std::string_view, DataCheck>, 5> kChecks = {
    {{"gather_rows", {kCheckIds, 1, 0, true}},
     {"grouped_matmul", kOffsets},
     {"grouped_outer", kOffsets},
     {"quantized_gather", {kCheckIds, 1, 0, true}},
     {"scatter_add_rows", {kCheckIds, 1, kResult, true}}}};

}  // namespace

const DataCheck* FindDataCheck(std::string_view kernel) {
  for (const auto& [name, check] : kChecks) {
    if (name == kernel) return &check;
  }
  return nullptr;
}

int64_t RowsOfCheck(const DataCheck& check, const Signature& signature) {
  const auto is_written = [](const TensorSpec& argument) { return argument.access == Access::kWrite; };
  const auto rows = check.rows == kResult
                        ? std::find_if(signature.arguments.begin(), signature.arguments.end(), is_written)
                        : signature.arguments.begin() + static_cast<std::ptrdiff_t>(check.rows);
  return rows->shape[0];
}

Signature SignatureOfCheck(const DataCheck& check, const Signature& signature) {
  Signature result;
  result.kernel = std::string(check.kernel);
  result.threads = signature.threads;
  // No i32 is beyond more.
  result.attributes.push_back({"rows", {std::min<int64_t>(RowsOfCheck(check, signature), INT32_MAX)}, {}, ""});
  result.arguments.push_back(signature.arguments[check.argument]);
  result.arguments.push_back({Access::kReadWrite, DType::kI32, {kFaultWords}});
  return result;
}

bool IsDataCheck(std::string_view kernel) { return kernel == kCheckOffsets || kernel == kCheckIds; }

std::string DescribeFault(std::string_view check, int32_t place, int32_t value) {
  constexpr absl::string_view kNearest =
      "; the run counted it as the nearest that is not, and its results are of no use";
  if (check == kCheckOffsets) {
    return absl::StrCat("offset ", place - 1, " of rows in groups is ", value,
                        ", which is below the one before it, or 0, or above the number of rows", kNearest);
  }
  if (check == kCheckIds) {
    return absl::StrCat("row number ", place - 1, " is ", value, ", which is below 0 or no row of the table", kNearest);
  }
  return absl::StrCat("a check of data says ", place, " and ", value);
}

}  // namespace bowline::kernels
