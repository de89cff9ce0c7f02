#include "kernels/cpu/fill/stream.h"
#include "kernels/cpu/isa/simd.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

void Fill(void* out, size_t bytes, uint32_t word) {
  const IntVec value = IntVec(static_cast<int32_t>(word));
  IntVec *vector = static_cast<IntVec*>(out), *end = vector + bytes / sizeof(IntVec);
  constexpr int kPerLine = kStreamLine / sizeof(IntVec);
  for (; vector != end; vector += kPerLine) {
#pragma clang loop unroll(full)
    for (int i = 0; i < kPerLine; ++i) __builtin_nontemporal_store(value, vector + i);
  }
#if defined(__x86_64__)
  __builtin_ia32_sfence();  // the order of memory does not cover such stores
#endif
}

}  // namespace

extern const StreamTable kStream = {&Fill};

}  // namespace bowline::kernels::BOWLINE_ISA
