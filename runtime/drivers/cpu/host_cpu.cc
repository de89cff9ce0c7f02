#include "runtime/drivers/cpu/host_cpu.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace bowline {
namespace {

// Kernels of the registry have workspace for it, and do without where it is not; generated code does not use it.
constexpr absl::string_view kOptionalFeature = "amx";

constexpr std::array<absl::string_view, 4> kLevels = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

}  // namespace

std::string CpuFeatures::Name() const {
  return absl::StrCat(kLevels[level], beyond.empty() ? "" : "+", absl::StrJoin(beyond, "+"));
}

bool CpuFeatures::Runs(absl::string_view target) const {
  const std::vector<std::string> parts = absl::StrSplit(target, '+');
  const auto* needed = std::find(kLevels.begin(), kLevels.end(), parts[0]);
  return needed != kLevels.end() && static_cast<size_t>(needed - kLevels.begin()) <= level &&
         std::all_of(parts.begin() + 1, parts.end(), [&](const std::string& feature) {
           return feature == kOptionalFeature || beyond.contains(feature);
         });
}

CpuFeatures HostCpuFeatures() {
  CpuFeatures host;
#if defined(__x86_64__)
  // Features, because not every compiler's builtin knows the levels' names; those that come together with a named one
  // (lahf-sahf, movbe, osxsave) are implied by it.
  const bool v2 = __builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") &&
                  __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
                  __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  host.level = v4 ? 3 : v3 ? 2 : v2 ? 1 : 0;
  if (v4 && __builtin_cpu_supports("avx512bf16")) host.beyond.insert("avx512bf16");
#endif
  return host;
}

}  // namespace bowline
