#ifndef BOWLINE_RUNTIME_DRIVERS_CPU_HOST_CPU_H_
#define BOWLINE_RUNTIME_DRIVERS_CPU_HOST_CPU_H_

#include <cstddef>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/registry/cpu_level.h"

namespace bowline {

// The instruction sets of a processor, by the names that plans use: "x86-64-v4+avx512bf16" is the level x86-64-v4 of
// the x86-64 psABI and a feature beyond it.
struct CpuFeatures {
  size_t level = 0;  // 0: x86-64, 1: x86-64-v2, 2: x86-64-v3, 3: x86-64-v4
  std::set<std::string> beyond;
  std::set<std::string> missing = {};  // features of levels above its own (kernels/registry/x86_levels.h) that it lacks
  bool is_limited = false;             // the environment's BOWLINE_TARGET_CPU leaves out some of its features

  // Removes the features that processors of level `most` lack. The processor must have that level.
  void LimitTo(CpuLevel most);

  // Returns the target with the most features that the processor runs, as plans name it.
  std::string Name() const;

  // Returns whether the processor runs code for `target`; false for levels and features unknown to this version.
  bool Runs(absl::string_view target) const;

  // Returns Name() and the features that the processor lacks for `target`: "x86-64-v2 without f16c and movbe".
  std::string NameBeside(absl::string_view target) const;
};

// Returns the CpuFeatures of a processor. Features are named as in x86_levels.h, plus avx512bf16 and amx.
CpuFeatures CpuFeaturesOf(const std::set<std::string>& features);

// Returns the features of this machine's processor, up to CpuLimit(); level 0 if it is no x86-64. Returns
// kInvalidArgument if BOWLINE_TARGET_CPU names no level.
absl::StatusOr<CpuFeatures> HostCpuFeatures();

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CPU_HOST_CPU_H_
