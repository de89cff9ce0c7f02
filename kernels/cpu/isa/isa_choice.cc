#include "kernels/cpu/isa/isa_choice.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

namespace bowline::kernels {
namespace {

Isa limit = kBestIsa;

}  // namespace

Isa BestIsa(const std::set<std::string>& features) {
#if defined(BOWLINE_HAVE_X86_VARIANTS)
  const auto has = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&](const char* name) { return features.contains(name); });
  };
  // Exactly the features that kernels/CMakeLists.txt enables for each variant.
  if (!has({"avx2", "fma", "f16c"})) return Isa::kBaseline;
  if (!has({"avx512f", "avx512vl", "avx512dq", "avx512bw"})) return Isa::kAvx2;
  if (!has({kBf16Feature})) return Isa::kAvx512;
  return has({kAmxFeature}) ? Isa::kAmx : Isa::kAvx512Bf16;
#else
  return Isa::kBaseline;
#endif
}

Isa IsaOf(CpuLevel level) {
  switch (level) {
    case CpuLevel::kV2:
      return Isa::kBaseline;
    case CpuLevel::kV3:
      return Isa::kAvx2;
    case CpuLevel::kV4:
      return Isa::kAvx512;
    case CpuLevel::kV4Bf16:
      return Isa::kAvx512Bf16;
    case CpuLevel::kV4Bf16Amx:
      return Isa::kAmx;
  }
  return Isa::kBaseline;
}

Isa ActiveIsa() {
  static const Isa detected = [] {
    // CreateKernel returns the error of a limit that is none.
    const std::optional<CpuLevel> most = CpuLimit().value_or(CpuLevel::kV2);
    return std::min(BestIsa(HostFeatures()), most.has_value() ? IsaOf(*most) : kBestIsa);
  }();
  return std::min(detected, limit);
}

void LimitIsaForTesting(Isa isa) { limit = isa; }

}  // namespace bowline::kernels
