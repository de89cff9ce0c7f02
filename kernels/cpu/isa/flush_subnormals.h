#ifndef BOWLINE_KERNELS_CPU_ISA_FLUSH_SUBNORMALS_H_
#define BOWLINE_KERNELS_CPU_ISA_FLUSH_SUBNORMALS_H_

// Flushing of subnormal numbers, those below 2^-126 in f32, to zero. Intel processors take a hundred cycles or more for
// each operation that reads or produces one, and thousands of probabilities in trained models underflow to subnormals.
// So programs that run kernels treat subnormal numbers as zeros (docs/architecture.md#numerics).

#include <cstdint>

namespace bowline::kernels {

// The settings of the calling thread's arithmetic: how it rounds, and whether subnormal operands and results are zeros.
// On processors other than x86-64, one number for all.
inline uint32_t FloatSettings() {
#if defined(__x86_64__)
  constexpr uint32_t kNoFlags = ~0x3fu;  // the flags that operations set
  return __builtin_ia32_stmxcsr() & kNoFlags;
#else
  return 0;
#endif
}

inline void SetFloatSettings([[maybe_unused]] uint32_t settings) {
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(settings);
#endif
}

// During its lifetime the calling thread's SSE and AVX instructions treat subnormal operands and results as zeros.
class FlushSubnormals {
 public:
  FlushSubnormals() : before_(FloatSettings()) {
    if (before_ != Flushing(before_)) SetFloatSettings(Flushing(before_));
  }
  ~FlushSubnormals() {
    if (before_ != Flushing(before_)) SetFloatSettings(before_);
  }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  static constexpr uint32_t Flushing(uint32_t settings) {
    constexpr uint32_t kResultsAreZeros = 0x8000, kOperandsAreZeros = 0x40;
    return settings | kResultsAreZeros | kOperandsAreZeros;
  }

  const uint32_t before_;
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_ISA_FLUSH_SUBNORMALS_H_
