#ifndef BOWLINE_KERNELS_REGISTRY_CPU_LEVEL_H_
#define BOWLINE_KERNELS_REGISTRY_CPU_LEVEL_H_

// The levels of instruction sets that --target-cpu and plans name, and the one that this process is limited to. Code
// generators, the choice of kernels and loaders of plans use the same functions.

#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/registry/x86_levels.h"

namespace bowline {

// Each runs the code of those before it.
enum class CpuLevel : uint8_t { kV2, kV3, kV4, kV4Bf16, kV4Bf16Amx };
inline constexpr std::string_view kCpuLevelNames[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4+avx512bf16",
                                                      "x86-64-v4+avx512bf16+amx"};

constexpr std::string_view NameOf(CpuLevel level) { return kCpuLevelNames[static_cast<size_t>(level)]; }

// Nothing where no level has the name.
std::optional<CpuLevel> CpuLevelNamed(std::string_view name);

// "x86-64-v2, x86-64-v3, ...", for messages.
std::string CpuLevelList();

// Features beyond those of x86_levels.h. kBf16Feature: with AVX512-VNNI, which all processors have that have it.
// kAmxFeature: tiles of bf16 that the system keeps for this process.
inline constexpr char kBf16Feature[] = "avx512bf16";
inline constexpr char kAmxFeature[] = "amx";

// The highest level of a processor with these features; nothing where it lacks a part of the lowest.
std::optional<CpuLevel> CpuLevelOf(const std::set<std::string>& features);

// The features of this machine's processor, whatever it is limited to; none if it is no x86-64.
const std::set<std::string>& HostFeatures();

// The environment's limit: this process takes the machine for one of that level.
inline constexpr char kCpuLimitVariable[] = "BOWLINE_TARGET_CPU";

// The limit that the variable's `text` means on a processor of the level `machine`; nothing where it is empty or not
// set. kInvalidArgument where it names no level, or one that the machine lacks.
absl::StatusOr<std::optional<CpuLevel>> ReadCpuLimit(const char* text, std::optional<CpuLevel> machine);

// The limit of this process, as the variable was at the first call.
const absl::StatusOr<std::optional<CpuLevel>>& CpuLimit();

// The highest level for which this process may generate code that it runs; the lowest one where it runs none.
absl::StatusOr<CpuLevel> NativeCpuLevel();

}  // namespace bowline

#endif  // BOWLINE_KERNELS_REGISTRY_CPU_LEVEL_H_
