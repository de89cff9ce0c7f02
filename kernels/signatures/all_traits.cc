#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/registry/data_check.h"
#include "kernels/registry/kernel_traits.h"
#include "kernels/registry/sequence_operands.h"
#include "kernels/registry/valid_rows.h"

namespace bowline::kernels {
namespace {

template <typename Fact>
const Fact* PointerTo(const std::optional<Fact>& fact) {
  return fact.has_value() ? &*fact : nullptr;
}

}  // namespace

const KernelTraits* FindTraits(std::string_view kernel) {
  static const auto* all = new std::map<std::string_view, KernelTraits>{
#define BOWLINE_KERNEL(Name, name) {name, Name##Traits()},
#include "kernels/registry/kernels.inc"
#undef BOWLINE_KERNEL
  };
  const auto found = all->find(kernel);
  return found == all->end() ? nullptr : &found->second;
}

absl::Status CheckCoverage(const Signature& signature) {
  const KernelTraits* traits = FindTraits(signature.kernel);
  return traits == nullptr || traits->coverage == nullptr ? absl::OkStatus() : traits->coverage(signature);
}

const DataCheck* FindDataCheck(std::string_view kernel) {
  const KernelTraits* traits = FindTraits(kernel);
  return traits == nullptr ? nullptr : PointerTo(traits->data_check);
}

bool IsDataCheck(std::string_view kernel) {
  const KernelTraits* traits = FindTraits(kernel);
  return traits != nullptr && traits->describe_fault != nullptr;
}

const ValidRows* FindValidRows(std::string_view kernel, bool leaves_rows_out) {
  const KernelTraits* traits = FindTraits(kernel);
  if (traits == nullptr) return nullptr;
  return PointerTo(leaves_rows_out ? traits->left_out_rows : traits->valid_rows);
}

const SequenceOperands* FindSequenceOperands(std::string_view kernel) {
  const KernelTraits* traits = FindTraits(kernel);
  return traits == nullptr ? nullptr : PointerTo(traits->sequences);
}

std::string DescribeFault(std::string_view check, int32_t place, int32_t value) {
  const KernelTraits* traits = FindTraits(check);
  if (traits != nullptr && traits->describe_fault != nullptr) return traits->describe_fault(place, value);
  return absl::StrCat("a check of data says ", place, " and ", value);
}

}  // namespace bowline::kernels
