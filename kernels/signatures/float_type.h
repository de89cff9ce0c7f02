#ifndef BOWLINE_KERNELS_SIGNATURES_FLOAT_TYPE_H_
#define BOWLINE_KERNELS_SIGNATURES_FLOAT_TYPE_H_

// Kernels use this whose floating-point arguments may be of several types.

#include "kernels/registry/registry.h"
#include "types/computed_types.h"

namespace bowline::kernels {

// The type of the argument if kernels compute in it, else f32, which CheckSignature will then ask for.
inline DType FloatTypeOf(const Signature& signature, size_t argument) {
  if (argument >= signature.arguments.size()) return DType::kF32;
  const DType type = signature.arguments[argument].dtype;
  return IsComputedIn(type) ? type : DType::kF32;
}

// The type of an argument that receives sums, which kernels compute in f32 from operands of type `operands`: that type
// if the argument has it, else f32.
inline DType SumTypeOf(const Signature& signature, size_t argument, DType operands) {
  return FloatTypeOf(signature, argument) == operands ? operands : DType::kF32;
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_FLOAT_TYPE_H_
