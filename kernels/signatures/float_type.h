#ifndef BOWLINE_KERNELS_SIGNATURES_FLOAT_TYPE_H_
#define BOWLINE_KERNELS_SIGNATURES_FLOAT_TYPE_H_

// Kernels use this whose floating-point arguments may be f32 or bf16.

#include "kernels/registry/registry.h"

namespace bowline::kernels {

// The type of the argument if it is one of the two, else f32, which CheckSignature will then ask for.
inline DType FloatTypeOf(const Signature& signature, size_t argument) {
  const bool bf16 = argument < signature.arguments.size() && signature.arguments[argument].dtype == DType::kBF16;
  return bf16 ? DType::kBF16 : DType::kF32;
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_FLOAT_TYPE_H_
