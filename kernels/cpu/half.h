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

// The types that kernels compute in, and no others (types/computed_types.h).
enum class ComputedType : uint8_t { kF32, kBf16, kF16 };

// Converts `type`, which must be a computed type: callers check the kernel's signature first. Any other type ends the
// process instead of being taken for f32.
static inline constexpr __attribute__((always_inline)) ComputedType ComputedTypeOf(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return ComputedType::kF32;
    case ElementType::kBF16:
      return ComputedType::kBf16;
    case ElementType::kF16:
      return ComputedType::kF16;
    case ElementType::kF64:
    case ElementType::kI64:
    case ElementType::kI32:
    case ElementType::kU16:
    case ElementType::kI8:
    case ElementType::kU8:
    case ElementType::kBool:
    case ElementType::kI16:
    case ElementType::kU32:
    case ElementType::kU64:
    case ElementType::kQ8_0:
    case ElementType::kQ4_0:
    case ElementType::kQ4_1:
    case ElementType::kQ5_0:
    case ElementType::kQ5_1:
    case ElementType::kQ2_K:
    case ElementType::kQ3_K:
    case ElementType::kQ4_K:
    case ElementType::kQ5_K:
    case ElementType::kQ6_K:
      break;
  }
  __builtin_trap();
}

// Calls `visit` with a zero of the C++ type for `type`, which must be a computed type, and returns its result.
template <typename Visitor>
static inline __attribute__((always_inline)) auto VisitFloatType(ElementType type, Visitor visit) {
  switch (ComputedTypeOf(type)) {
    case ComputedType::kF32:
      return visit(0.0f);
    case ComputedType::kBf16:
      return visit(Bf16{});
    case ComputedType::kF16:
      return visit(F16{});
  }
  __builtin_trap();
}

// Returns `f32`, `bf16` or `f16`, whichever is for `type`, which must be a computed type.
template <typename T>
static inline constexpr __attribute__((always_inline)) const T& ChooseByComputedType(
    ElementType type, const T& f32 [[clang::lifetimebound]], const T& bf16 [[clang::lifetimebound]],
    const T& f16 [[clang::lifetimebound]]) {
  switch (ComputedTypeOf(type)) {
    case ComputedType::kF32:
      return f32;
    case ComputedType::kBf16:
      return bf16;
    case ComputedType::kF16:
      return f16;
  }
  __builtin_trap();
}

// Narrow<float> is the identity, for code that is generic over the stored type.
template <typename T>
static inline __attribute__((always_inline)) T Narrow(float value) {
  return Rounding<T>::Round(value);
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_HALF_H_
