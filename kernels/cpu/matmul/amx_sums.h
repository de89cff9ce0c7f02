#ifndef BOWLINE_KERNELS_CPU_MATMUL_AMX_SUMS_H_
#define BOWLINE_KERNELS_CPU_MATMUL_AMX_SUMS_H_

// The sums of a product in AMX's tile registers. Registers 0 to 3 hold sums of up to 32 rows and 32 columns, in
// row-major order; 4 and 5 hold rows of A, 6 and 7 columns of B. Only for files compiled for AMX.

#include "kernels/cpu/isa/amx_registers.h"
#include "kernels/cpu/isa/simd.h"

namespace bowline::kernels::BOWLINE_ISA {

class AmxSums {
 public:
  AmxSums() = default;
  AmxSums(const AmxSums&) = delete;
  AmxSums& operator=(const AmxSums&) = delete;
  // Releases the tile registers (amx_registers.h).
  ~AmxSums() {
    if (rows_ > 0) __builtin_ia32_tilerelease();
  }

  // Sets the registers' shapes for `rows` rows of A, at most 32.
  void Configure(int64_t rows) {
    if (rows == rows_) return;
    AmxConfiguration c;
    c.rows[0] = c.rows[1] = c.rows[4] = static_cast<uint8_t>(rows < kExtent ? rows : kExtent);
    c.rows[2] = c.rows[3] = c.rows[5] = static_cast<uint8_t>(rows > kExtent ? rows - kExtent : 1);
    c.Load();
    rows_ = rows;
  }

  // Sets the sums to zero, or with `accumulate` to the values at `sums`, whose rows are `stride` bytes apart.
  template <bool kSecondRows, bool kSecondColumns>
  BOWLINE_ALWAYS_INLINE void Load(const float* sums, int64_t stride, bool accumulate) {
    const float* const below = sums + kExtent * (stride / 4);
    if (accumulate) {
      __builtin_ia32_tileloadd64(0, sums, stride);
      if constexpr (kSecondColumns) __builtin_ia32_tileloadd64(1, sums + kExtent, stride);
      if constexpr (kSecondRows) __builtin_ia32_tileloadd64(2, below, stride);
      if constexpr (kSecondRows && kSecondColumns) __builtin_ia32_tileloadd64(3, below + kExtent, stride);
    } else {
      __builtin_ia32_tilezero(0);
      __builtin_ia32_tilezero(1);
      __builtin_ia32_tilezero(2);
      __builtin_ia32_tilezero(3);
    }
  }
  template <bool kSecondRows, bool kSecondColumns>
  BOWLINE_ALWAYS_INLINE void Store(float* sums, int64_t stride) {
    float* const below = sums + kExtent * (stride / 4);
    __builtin_ia32_tilestored64(0, sums, stride);
    if constexpr (kSecondColumns) __builtin_ia32_tilestored64(1, sums + kExtent, stride);
    if constexpr (kSecondRows) __builtin_ia32_tilestored64(2, below, stride);
    if constexpr (kSecondRows && kSecondColumns) __builtin_ia32_tilestored64(3, below + kExtent, stride);
  }

 private:
  static constexpr int64_t kExtent = 16;

  int64_t rows_ = 0;  // rows that the registers are configured for; 0: not configured
};

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_AMX_SUMS_H_
