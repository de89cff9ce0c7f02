#ifndef BOWLINE_KERNELS_CPU_HALF_H_
#define BOWLINE_KERNELS_CPU_HALF_H_

// Floating-point elements of 16 bits as kernels load and store them: computed in f32, rounded to nearest even
// (types/half.h). All of it is inlined, so that *_isa.cc files may use it (see isa/isa.h).

#include <cstdint>

#include "types/element_type.h"
#include "types/half.h"

namespace bowline::kernels {

// The upper half of an f32.
struct Bf16 {
  uint16_t bits;
};
// IEEE binary16.
struct F16 {
  uint16_t bits;
};

static inline __attribute__((always_inline)) float Widen(float value) { return value; }
static inline __attribute__((always_inline)) float Widen(Bf16 value) { return Bf16ToF32(value.bits); }
static inline __attribute__((always_inline)) float Widen(F16 value) { return F16ToF32(value.bits); }

template <typename T>
struct Rounding;  // rounds f32 to T
template <>
struct Rounding<float> {
  static inline __attribute__((always_inline)) float Round(float value) { return value; }
};
template <>
struct Rounding<Bf16> {
  static inline __attribute__((always_inline)) Bf16 Round(float value) { return {F32ToBf16(value)}; }
};
template <>
struct Rounding<F16> {
  static inline __attribute__((always_inline)) F16 Round(float value) { return {F32ToF16(value)}; }
};

// `visit` of a zero of the C++ type of `type`, which is one that kernels compute in.
template <typename Visitor>
static inline __attribute__((always_inline)) auto VisitFloatType(ElementType type, Visitor visit) {
  switch (type) {
    case ElementType::kBF16:
      return visit(Bf16{});
    case ElementType::kF16:
      return visit(F16{});
    default:
      return visit(0.0f);
  }
}

// Narrow<float> is the identity, for code that is generic over the stored type.
template <typename T>
static inline __attribute__((always_inline)) T Narrow(float value) {
  return Rounding<T>::Round(value);
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_HALF_H_
