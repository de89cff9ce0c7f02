#ifndef BOWLINE_KERNELS_CPU_RANDOM_RANDOM_H_
#define BOWLINE_KERNELS_CPU_RANDOM_RANDOM_H_

// The generator of registry/philox.h for many blocks at a time. Words and uniform values are exactly those of the
// header. Normal values are computed in f64 by polynomials instead of the library's functions; before they are rounded
// to f32 they differ from the header's by at most 2^-49 of their size. So about one f32 in 10^7 is rounded the other
// way.

#include <cstdint>

#include "kernels/cpu/isa/isa.h"
#include "kernels/signatures/random_scaling.h"

namespace bowline::kernels {

// Writes elements [first, first + count) of the tensor whose Philox key is {key0, key1} to `out`.
using RandomFill = void (*)(uint32_t key0, uint32_t key1, const RandomScaling& scaling, uint64_t first, int64_t count,
                            float* out);
struct RandomTable {
  RandomFill normal, uniform;
};
BOWLINE_DECLARE_ISA_VARIANTS(RandomTable, kRandom)

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_RANDOM_RANDOM_H_
