#ifndef BOWLINE_KERNELS_REGISTRY_X86_LEVELS_H_
#define BOWLINE_KERNELS_REGISTRY_X86_LEVELS_H_

// The levels of the x86-64 psABI that Target.cpu names, and the features that each adds to the level before. The code
// generators for a level and the devices that run it use the same list.

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace bowline {

inline constexpr const char* kX86Levels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

// F(level, feature), by the names that LLVM and __builtin_cpu_supports have for features. cx16, lahf-sahf and xsave,
// which the builtin does not know, come with those of their levels.
// clang-format off
#define BOWLINE_X86_LEVEL_FEATURES(F)                                                            \
  F(1, "sse3") F(1, "ssse3") F(1, "sse4.1") F(1, "sse4.2") F(1, "popcnt")                        \
  F(2, "avx") F(2, "avx2") F(2, "bmi") F(2, "bmi2") F(2, "f16c") F(2, "fma") F(2, "lzcnt") F(2, "movbe") \
  F(3, "avx512f") F(3, "avx512bw") F(3, "avx512cd") F(3, "avx512dq") F(3, "avx512vl")
// clang-format on

struct X86Feature {
  size_t level;  // the first one that has it: an index into kX86Levels
  const char* name;
};
#define BOWLINE_X86_FEATURE(level, name) {level, name},
inline constexpr X86Feature kX86LevelFeatures[] = {BOWLINE_X86_LEVEL_FEATURES(BOWLINE_X86_FEATURE)};
#undef BOWLINE_X86_FEATURE

// The highest level of a processor that has the features for which `has(name)` is true.
template <typename Has>
size_t X86LevelOf(Has has) {
  size_t level = std::size(kX86Levels) - 1;
  for (const X86Feature& feature : kX86LevelFeatures) {
    if (!has(feature.name)) level = std::min(level, feature.level - 1);
  }
  return level;
}

}  // namespace bowline

#endif  // BOWLINE_KERNELS_REGISTRY_X86_LEVELS_H_
