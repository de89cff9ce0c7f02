#include "runtime/drivers/cpu/host_cpu.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status.h"

namespace bowline {
namespace {

// Kernels of the registry have workspace for it, and do without where it is not; generated code does not use it.
constexpr absl::string_view kOptionalFeature = kAmxFeature;

// The level of a target, an index into kX86Levels; absent where it has another name.
std::optional<size_t> LevelOf(absl::string_view target) {
  const std::string level(target.substr(0, target.find('+')));
  const auto* found = std::find(std::begin(kX86Levels), std::end(kX86Levels), level);
  if (found == std::end(kX86Levels)) return std::nullopt;
  return static_cast<size_t>(found - std::begin(kX86Levels));
}

}  // namespace

void CpuFeatures::LimitTo(CpuLevel most) {
  const size_t highest = LevelOf(std::string(NameOf(most))).value_or(0);
  is_limited = highest < level || (most < CpuLevel::kV4Bf16 && !beyond.empty());
  level = std::min(level, highest);
  if (most < CpuLevel::kV4Bf16) beyond.clear();
}

std::string CpuFeatures::Name() const {
  return absl::StrCat(kX86Levels[level], beyond.empty() ? "" : "+", absl::StrJoin(beyond, "+"));
}

bool CpuFeatures::Runs(absl::string_view target) const {
  const std::vector<std::string> parts = absl::StrSplit(target, '+');
  const std::optional<size_t> needed = LevelOf(target);
  return needed.has_value() && *needed <= level &&
         std::all_of(parts.begin() + 1, parts.end(), [&](const std::string& feature) {
           return feature == kOptionalFeature || beyond.contains(feature);
         });
}

std::string CpuFeatures::NameBeside(absl::string_view target) const {
  std::vector<std::string> lacks;
  for (const X86Feature& feature : kX86LevelFeatures) {
    if (feature.level <= LevelOf(target).value_or(0) && missing.contains(feature.name)) lacks.push_back(feature.name);
  }
  return absl::StrCat(Name(), lacks.empty() ? "" : " without ", absl::StrJoin(lacks, ", "));
}

CpuFeatures CpuFeaturesOf(const std::set<std::string>& features) {
  CpuFeatures cpu;
  cpu.level = X86LevelOf([&](const char* name) { return features.contains(name); });
  for (const X86Feature& feature : kX86LevelFeatures) {
    if (!features.contains(feature.name)) cpu.missing.insert(feature.name);
  }
  if (cpu.level + 1 == std::size(kX86Levels) && features.contains(kBf16Feature)) {
    cpu.beyond.insert(kBf16Feature);
  }
  return cpu;
}

absl::StatusOr<CpuFeatures> HostCpuFeatures() {
  BOWLINE_ASSIGN_OR_RETURN(const std::optional<CpuLevel> most, CpuLimit());
  CpuFeatures cpu = CpuFeaturesOf(HostFeatures());
  if (most.has_value()) cpu.LimitTo(*most);
  return cpu;
}

}  // namespace bowline
