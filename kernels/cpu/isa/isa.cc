#include "kernels/cpu/isa/isa.h"

#if defined(BOWLINE_HAVE_X86_VARIANTS)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace bowline::kernels {
namespace {

Isa limit = kBestIsa;

#if defined(BOWLINE_HAVE_X86_VARIANTS)
// Whether the processor multiplies tiles of bf16 and the system keeps them for this process. Linux does only on
// request, because tiles make the state of a thread 8 KiB larger; threads that are there already may use them too.
bool HasAmx() {
#if defined(__linux__)
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;  // CPUID.7.0:EDX
  constexpr long kRequestPermission = 0x1023, kTileData = 18;   // ARCH_REQ_XCOMP_PERM; the state component
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (edx & kAmxBf16) != 0 && (edx & kAmxTile) != 0 && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}
#endif

Isa Detect() {
#if defined(BOWLINE_HAVE_X86_VARIANTS)
  // Exactly the features that kernels/CMakeLists.txt enables for each variant.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c")) {
    return Isa::kBaseline;
  }
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  if (!avx512) return Isa::kAvx2;
  if (!__builtin_cpu_supports("avx512bf16")) return Isa::kAvx512;
  return HasAmx() ? Isa::kAmx : Isa::kAvx512Bf16;
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
