#ifndef BOWLINE_RUNTIME_BASE_HALF_H_
#define BOWLINE_RUNTIME_BASE_HALF_H_

// Conversions between f32 and the 16-bit formats, given by their bits. To 16 bits: round to nearest, ties to even;
// overflow gives infinity; subnormals are kept; a NaN stays a (quiet) NaN with its sign. To f32: exact.

#include <bit>
#include <cstdint>

namespace bowline {

// bfloat16: the upper half of an f32.
constexpr float Bf16ToF32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

constexpr uint16_t F32ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  // Rounding could carry a NaN's payload into infinity.
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  const uint32_t to_even = 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<uint16_t>((bits + to_even) >> 16);
}

// IEEE binary16: 1 sign, 5 exponent (bias 15), 10 mantissa bits.
constexpr float F16ToF32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    // Zero or subnormal: mantissa * 2^-24, exact in f32.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) {
    const uint32_t quiet = mantissa != 0 ? 0x400000u : 0;
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13) | quiet);
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

constexpr uint16_t F32ToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
  // 65520 is the midpoint between the largest half, 65504, and 2^16; it and all above round to infinity.
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  uint32_t result;
  uint32_t rest;  // what is cut off, against `half` of a last place
  uint32_t half;
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

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_HALF_H_
