#include "kernels/registry/cpu_level.h"

#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace bowline {
namespace {

// Whether the processor multiplies tiles of bf16 and the system keeps them for this process. Linux does only on
// request, because tiles make the state of a thread 8 KiB larger; threads that are there already may use them too.
bool HasAmx() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;  // CPUID.7.0:EDX
  constexpr long kRequestPermission = 0x1023, kTileData = 18;   // ARCH_REQ_XCOMP_PERM; the state component
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (edx & kAmxBf16) != 0 && (edx & kAmxTile) != 0 && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace

std::optional<CpuLevel> CpuLevelNamed(std::string_view name) {
  for (size_t i = 0; i < std::size(kCpuLevelNames); ++i) {
    if (kCpuLevelNames[i] == name) return static_cast<CpuLevel>(i);
  }
  return std::nullopt;
}

std::string CpuLevelList() {
  return absl::StrJoin(kCpuLevelNames, ", ", [](std::string* out, std::string_view name) { out->append(name); });
}

std::optional<CpuLevel> CpuLevelOf(const std::set<std::string>& features) {
  const size_t level = X86LevelOf([&](const char* name) { return features.contains(name); });
  if (level == 0) return std::nullopt;
  if (level < 3) return level == 1 ? CpuLevel::kV2 : CpuLevel::kV3;
  if (!features.contains(kBf16Feature)) return CpuLevel::kV4;
  return features.contains(kAmxFeature) ? CpuLevel::kV4Bf16Amx : CpuLevel::kV4Bf16;
}

const std::set<std::string>& HostFeatures() {
  static const std::set<std::string> host = [] {
    std::set<std::string> features;
#if defined(__x86_64__)
#define BOWLINE_ADD_FEATURE(level, name) \
  if (__builtin_cpu_supports(name)) features.insert(name);
    BOWLINE_X86_LEVEL_FEATURES(BOWLINE_ADD_FEATURE)
#undef BOWLINE_ADD_FEATURE
    if (__builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni")) features.insert(kBf16Feature);
    if (HasAmx()) features.insert(kAmxFeature);
#endif
    return features;
  }();
  return host;
}

absl::StatusOr<std::optional<CpuLevel>> ReadCpuLimit(const char* text, std::optional<CpuLevel> machine) {
  if (text == nullptr || *text == '\0') return std::optional<CpuLevel>();
  const std::optional<CpuLevel> asked = CpuLevelNamed(text);
  if (!asked.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("the environment's ", kCpuLimitVariable, "='", text,
                                                   "' is no level of processors; set it to one of ", CpuLevelList(),
                                                   ", or unset it"));
  }
  if (!machine.has_value() || *asked > *machine) {
    const std::string has = machine.has_value() ? absl::StrCat("is '", std::string(NameOf(*machine)), "'")
                                                : absl::StrCat("has less than '", std::string(kCpuLevelNames[0]), "'");
    return absl::InvalidArgumentError(absl::StrCat("the environment's ", kCpuLimitVariable, "='", text,
                                                   "' is more than this machine, which ", has,
                                                   "; unset it, or set it to a level that this machine has"));
  }
  return asked;
}

const absl::StatusOr<std::optional<CpuLevel>>& CpuLimit() {
  static const absl::StatusOr<std::optional<CpuLevel>> limit =
      ReadCpuLimit(std::getenv(kCpuLimitVariable), CpuLevelOf(HostFeatures()));
  return limit;
}

absl::StatusOr<CpuLevel> NativeCpuLevel() {
  const absl::StatusOr<std::optional<CpuLevel>>& limit = CpuLimit();
  if (!limit.ok()) return limit.status();
  if (limit->has_value()) return **limit;
  return CpuLevelOf(HostFeatures()).value_or(CpuLevel::kV2);
}

}  // namespace bowline
