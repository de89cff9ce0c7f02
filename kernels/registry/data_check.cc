#include "kernels/registry/data_check.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace bowline::kernels {
namespace {

constexpr std::string_view kCheckOffsets = "check_offsets";
constexpr DataCheck kOffsets = {kCheckOffsets, 2};
constexpr std::array<std::pair<std::string_view, DataCheck>, 2> kChecks = {
    {{"grouped_matmul", kOffsets}, {"grouped_outer", kOffsets}}};

}  // namespace

const DataCheck* FindDataCheck(std::string_view kernel) {
  for (const auto& [name, check] : kChecks) {
    if (name == kernel) return &check;
  }
  return nullptr;
}

Signature SignatureOfCheck(const DataCheck& check, const Signature& signature) {
  Signature result;
  result.kernel = std::string(check.kernel);
  result.threads = signature.threads;
  result.attributes.push_back({"rows", {signature.arguments[0].shape[0]}, {}, ""});
  result.arguments.push_back(signature.arguments[check.argument]);
  result.arguments.push_back({Access::kReadWrite, DType::kI32, {1}});
  return result;
}

bool IsDataCheck(std::string_view kernel) { return kernel == kCheckOffsets; }

std::string DescribeFault(std::string_view check, int32_t fault) {
  if (!IsDataCheck(check)) return absl::StrCat("a check of data says ", fault);
  return absl::StrCat(
      "offset ", fault - 1,
      " of rows in groups is below the one before it, or 0, or above the number of rows; the run counted "
      "it as the nearest that is not, and its results are of no use");
}

}  // namespace bowline::kernels
