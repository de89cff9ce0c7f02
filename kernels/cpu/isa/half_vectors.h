#ifndef BOWLINE_KERNELS_CPU_ISA_HALF_VECTORS_H_
#define BOWLINE_KERNELS_CPU_ISA_HALF_VECTORS_H_

// Converts vectors between IEEE binary16 and f32, with the results of types/half.h. Only for *_isa.cc files.

#include "kernels/cpu/isa/simd.h"
#include "types/half.h"

namespace bowline::kernels::BOWLINE_ISA {

template <int kN>
using Words = float __attribute__((ext_vector_type(kN)));
template <int kN>
using Bits = uint32_t __attribute__((ext_vector_type(kN)));
template <int kN>
using Halves = uint16_t __attribute__((ext_vector_type(kN)));

#if defined(__F16C__)

template <int kN>
using F16s = _Float16 __attribute__((ext_vector_type(kN)));

template <int kN>
BOWLINE_ALWAYS_INLINE Words<kN> WidenF16(Halves<kN> halves) {
  return __builtin_convertvector(__builtin_bit_cast(F16s<kN>, halves), Words<kN>);
}
template <int kN>
BOWLINE_ALWAYS_INLINE Halves<kN> RoundToF16(Words<kN> values) {
  return __builtin_bit_cast(Halves<kN>, __builtin_convertvector(values, F16s<kN>));
}
BOWLINE_ALWAYS_INLINE float WidenF16(uint16_t half) { return static_cast<float>(__builtin_bit_cast(_Float16, half)); }

#else

// Moves the mantissa to its place and adds 112 to the exponent. Below 2^-14 a half has no leading one: then the number
// gets the exponent of 2^-14, which adds a leading one, and subtracting 2^-14 removes that again.
template <int kN>
BOWLINE_ALWAYS_INLINE Words<kN> WidenF16(Halves<kN> halves) {
  const Bits<kN> bits = __builtin_convertvector(halves, Bits<kN>);
  const Bits<kN> magnitude = (bits & 0x7fffu) << 13, sign = (bits & 0x8000u) << 16;
  const Words<kN> subnormal = __builtin_bit_cast(Words<kN>, magnitude + (113u << 23)) - 0x1p-14f;
  const Bits<kN> special = magnitude | (magnitude > 0x0f800000u ? Bits<kN>(0x7fc00000u) : Bits<kN>(0x7f800000u));
  const Bits<kN> finite = magnitude < (1u << 23) ? __builtin_bit_cast(Bits<kN>, subnormal) : magnitude + (112u << 23);
  return __builtin_bit_cast(Words<kN>, (magnitude >= 0x0f800000u ? special : finite) | sign);
}

// Below 2^-14, adding 1/2 rounds at the last place of a half, and the low bits of the sum are the bits of the half.
template <int kN>
BOWLINE_ALWAYS_INLINE Halves<kN> RoundToF16(Words<kN> values) {
  const Bits<kN> bits = __builtin_bit_cast(Bits<kN>, values);
  const Bits<kN> magnitude = bits & 0x7fffffffu, sign = (bits >> 16) & 0x8000u;
  const Bits<kN> subnormal =
      __builtin_bit_cast(Bits<kN>, __builtin_bit_cast(Words<kN>, magnitude) + 0.5f) - 0x3f000000u;
  const Bits<kN> normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const Bits<kN> finite = magnitude < 0x38800000u ? subnormal : normal;
  const Bits<kN> nan = 0x7e00u | ((magnitude >> 13) & 0x1ffu);
  const Bits<kN> infinite = magnitude > 0x7f800000u ? nan : Bits<kN>(0x7c00u);
  return __builtin_convertvector((magnitude >= 0x477ff000u ? infinite : finite) | sign, Halves<kN>);
}
BOWLINE_ALWAYS_INLINE float WidenF16(uint16_t half) { return F16ToF32(half); }

#endif

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_ISA_HALF_VECTORS_H_
