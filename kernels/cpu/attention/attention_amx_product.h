#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_AMX_PRODUCT_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_AMX_PRODUCT_H_

// The block products that attention consists of, in AMX's registers. Only for files compiled for AMX.

#include <cstdint>

#include "kernels/cpu/isa/simd.h"

namespace bowline::kernels::BOWLINE_ISA {

// Where a factor's registers are. `row_bytes` is the distance of rows within a register, in bytes. In elements,
// `second` is the distance to the next 16 rows or columns of the product, `step` to the next 32 terms of its sums.
struct AmxFactor {
  const uint16_t* first;
  int64_t row_bytes, second, step;
};

// C = A B, or C += A B with kAccumulate, over `steps` steps of 32 terms. C has 32 columns, and 32 rows or, without
// kSecondRows, 16. Registers 0 to 3 hold C, 4 and 5 hold A, 6 and 7 hold B.
template <bool kSecondRows, bool kAccumulate>
BOWLINE_ALWAYS_INLINE void MultiplyRegisters(int64_t steps, const AmxFactor& a, const AmxFactor& b, float* c,
                                             int64_t ld) {
  const int64_t stride = ld * 4;
  float* const below = c + 16 * ld;
  if constexpr (kAccumulate) {
    __builtin_ia32_tileloadd64(0, c, stride);
    __builtin_ia32_tileloadd64(1, c + 16, stride);
    if constexpr (kSecondRows) {
      __builtin_ia32_tileloadd64(2, below, stride);
      __builtin_ia32_tileloadd64(3, below + 16, stride);
    }
  } else {
    __builtin_ia32_tilezero(0);
    __builtin_ia32_tilezero(1);
    if constexpr (kSecondRows) {
      __builtin_ia32_tilezero(2);
      __builtin_ia32_tilezero(3);
    }
  }
  const uint16_t *rows = a.first, *columns = b.first;
  for (int64_t s = 0; s < steps; ++s, rows += a.step, columns += b.step) {
    __builtin_ia32_tileloadd64(6, columns, b.row_bytes);
    __builtin_ia32_tileloadd64(4, rows, a.row_bytes);
    __builtin_ia32_tdpbf16ps(0, 4, 6);
    __builtin_ia32_tileloadd64(7, columns + b.second, b.row_bytes);
    __builtin_ia32_tdpbf16ps(1, 4, 7);
    if constexpr (kSecondRows) {
      __builtin_ia32_tileloadd64(5, rows + a.second, a.row_bytes);
      __builtin_ia32_tdpbf16ps(2, 5, 6);
      __builtin_ia32_tdpbf16ps(3, 5, 7);
    }
  }
  __builtin_ia32_tilestored64(0, c, stride);
  __builtin_ia32_tilestored64(1, c + 16, stride);
  if constexpr (kSecondRows) {
    __builtin_ia32_tilestored64(2, below, stride);
    __builtin_ia32_tilestored64(3, below + 16, stride);
  }
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_AMX_PRODUCT_H_
