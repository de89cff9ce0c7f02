#ifndef BOWLINE_TYPES_HALF_H_
#define BOWLINE_TYPES_HALF_H_

// Conversions between f32 and the 16-bit formats, given by their bits. To 16 bits: round to nearest, ties to even;
// overflow gives infinity; subnormals are kept; a NaN stays a (quiet) NaN with its sign. To f32: exact.
//
// All of it is inlined and has internal linkage, so that sources that are compiled for an instruction set may use it.

#include <cstdint>

namespace bowline {

#define BOWLINE_HALF_FUNCTION [[maybe_unused, gnu::always_inline]] static constexpr

// bfloat16: the upper half of an f32.
BOWLINE_HALF_FUNCTION float Bf16ToF32(uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
}

BOWLINE_HALF_FUNCTION uint16_t F32ToBf16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  // Rounding could carry a NaN's payload into infinity.
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
}

// IEEE binary16: 1 sign, 5 exponent (bias 15), 10 mantissa bits.
BOWLINE_HALF_FUNCTION float F16ToF32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    // Zero or subnormal: mantissa * 2^-24, exact in f32.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, magnitude) | sign);
  }
  if (exponent == 31) {
    const uint32_t quiet = mantissa != 0 ? 0x400000u : 0;
    return __builtin_bit_cast(float, sign | 0x7f800000u | (mantissa << 13) | quiet);
  }
  return __builtin_bit_cast(float, sign | ((exponent + 112) << 23) | (mantissa << 13));
}

BOWLINE_HALF_FUNCTION uint16_t F32ToF16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
  // 65520 is the midpoint between the largest half, 65504, and 2^16; it and all above round to infinity.
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  uint32_t result = 0;
  uint32_t rest = 0;  // the bits cut off, against `half` of a last place
  uint32_t half = 0;
  if (magnitude >= 0x38800000u) {  // 2^-14, the smallest normal half
    const uint32_t rebased = magnitude - (112u << 23);
    result = rebased >> 13;
    rest = rebased & 0x1fffu;
    half = 0x1000u;
  } else {
    const uint32_t exponent = magnitude >> 23;
    if (exponent < 102) return sign;  // below 2^-25, half of the smallest subnormal
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t shift = 126 - exponent;  // 14 ... 24
    result = mantissa >> shift;
    rest = mantissa & ((1u << shift) - 1);
    half = 1u << (shift - 1);
  }
  // A carry runs into the exponent, which is just the next number.
  if (rest > half || (rest == half && (result & 1u) != 0)) ++result;
  return static_cast<uint16_t>(sign | result);
}

#undef BOWLINE_HALF_FUNCTION

}  // namespace bowline

#endif  // BOWLINE_TYPES_HALF_H_
