#ifndef BOWLINE_KERNELS_CPU_BF16_H_
#define BOWLINE_KERNELS_CPU_BF16_H_

// bfloat16, the upper half of an f32, as kernels load and store it. Widening is exact; narrowing rounds to nearest,
// ties to even, overflows to infinity, keeps subnormals, and keeps a NaN a (quiet) NaN. All of it is inlined, so that
// *_isa.cc files may use it (see isa/isa.h).

#include <cstdint>

namespace bowline::kernels {

struct Bf16 {
  uint16_t bits;
};

static inline __attribute__((always_inline)) float Widen(float value) { return value; }
static inline __attribute__((always_inline)) float Widen(Bf16 value) {
  const uint32_t bits = uint32_t{value.bits} << 16;
  float wide;
  __builtin_memcpy(&wide, &bits, sizeof(wide));
  return wide;
}

// Narrow<float> is the identity, for code that is generic over the stored type.
template <typename T>
static inline __attribute__((always_inline)) T Narrow(float value) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return value;
  } else {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof(bits));
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    // Rounding could carry the payload of a NaN into infinity.
    return T{static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded)};
  }
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_BF16_H_
