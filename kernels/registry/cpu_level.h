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

// A processor of a level also runs the code of all earlier levels.
enum class CpuLevel : uint8_t { kV2, kV3, kV4, kV4Bf16, kV4Bf16Amx };
inline constexpr std::string_view kCpuLevelNames[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4+avx512bf16",
                                                      "x86-64-v4+avx512bf16+amx"};

constexpr std::string_view NameOf(CpuLevel level) { return kCpuLevelNames[static_cast<size_t>(level)]; }

// Returns nothing if no level has the name.
std::optional<CpuLevel> CpuLevelNamed(std::string_view name);

// "x86-64-v2, x86-64-v3, ...", for messages.
std::string CpuLevelList();

// Features beyond those of x86_levels.h. kBf16Feature: with AVX512-VNNI, which all processors have that have it.
// kAmxFeature: tiles of bf16 that the system keeps for this process.
inline constexpr char kBf16Feature[] = "avx512bf16";
inline constexpr char kAmxFeature[] = "amx";

// Returns the highest level of a processor with these features; nothing if it lacks a part of the lowest level.
std::optional<CpuLevel> CpuLevelOf(const std::set<std::string>& features);

// Returns the features of this machine's processor, without the limit; none if it is no x86-64.
const std::set<std::string>& HostFeatures();

// The environment variable that limits this process to an older level.
inline constexpr char kCpuLimitVariable[] = "BOWLINE_TARGET_CPU";

// Returns the limit that the variable's `text` sets on a processor of level `machine`; nothing if it is empty or null.
// Returns kInvalidArgument if the text names no level, or a level that the machine lacks.
absl::StatusOr<std::optional<CpuLevel>> ReadCpuLimit(const char* text, std::optional<CpuLevel> machine);

// Returns the limit of this process, by the value of the variable at the first call.
const absl::StatusOr<std::optional<CpuLevel>>& CpuLimit();

// Returns the highest level for which this process may generate code to run; the lowest level if it can run none.
absl::StatusOr<CpuLevel> NativeCpuLevel();

}  // namespace bowline

#endif  // BOWLINE_KERNELS_REGISTRY_CPU_LEVEL_H_
