#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_WIDE_VECTORS_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_WIDE_VECTORS_H_

// Vectors of 16 lanes for every instruction set. If its registers are smaller, a vector takes several registers. Only
// for *_isa.cc files.

#include "kernels/cpu/isa/simd.h"

namespace bowline::kernels::BOWLINE_ISA {

inline constexpr int kWideLanes = 16;

using Wide = float __attribute__((ext_vector_type(kWideLanes)));
using WideInts = int32_t __attribute__((ext_vector_type(kWideLanes)));

BOWLINE_ALWAYS_INLINE Wide WideMulAdd(Wide a, Wide b, Wide c) {
#if defined(__FMA__) || defined(__ARM_NEON)
  return __builtin_elementwise_fma(a, b, c);
#else
  return a * b + c;  // without the instruction, fma is a library call per lane
#endif
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_QUANTIZED_WIDE_VECTORS_H_
