#include "kernels/cpu/isa/isa.h"

namespace bowline::kernels {
namespace {

Isa limit = Isa::kAvx512Bf16;

Isa Detect() {
#if defined(BOWLINE_HAVE_X86_VARIANTS)
  // Exactly the features that kernels/CMakeLists.txt enables for each variant.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::kBaseline;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  if (!avx512) return Isa::kAvx2;
  return __builtin_cpu_supports("avx512bf16") ? Isa::kAvx512Bf16 : Isa::kAvx512;
#else
  return Isa::kBaseline;
#endif
}

}  // namespace

Isa ActiveIsa() {
  static const Isa detected = Detect();
  return detected < limit ? detected : limit;
}

void LimitIsaForTesting(Isa isa) { limit = isa; }

}  // namespace bowline::kernels
