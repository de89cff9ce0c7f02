#ifndef BOWLINE_KERNELS_CPU_SAMPLING_EXPONENTIALS_H_
#define BOWLINE_KERNELS_CPU_SAMPLING_EXPONENTIALS_H_

// Passes over the logits of a row.

#include <cstdint>

#include "kernels/cpu/isa/isa.h"

namespace bowline::kernels {

// Sums are made of those of blocks of this many logits, so that a place in the sum is found without all its parts.
inline constexpr int64_t kExponentialBlock = 512;

struct LogitsExtent {
  float largest;
  bool finite;  // all of them; `largest` is of no use otherwise
};

struct ExponentialsTable {
  // Of at least one logit.
  LogitsExtent (*extent)(const float* logits, int64_t count);
  // The first index from `begin` on whose logit is `least` or above; `count` where there is none.
  int64_t (*find_at_least)(const float* logits, int64_t begin, int64_t count, float least);
  // sums[b] = the sum of exp((logits[i] - largest) * scale) over block b, in f64.
  void (*sum_blocks)(const float* logits, int64_t count, double largest, double scale, double* sums);
  // out[i] = exp((logits[i] - largest) * scale) of a block, which may be shorter than others; zeros behind.
  void (*block)(const float* logits, int64_t count, double largest, double scale, double* out);
};

BOWLINE_DECLARE_ISA_VARIANTS(ExponentialsTable, kExponentials);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_SAMPLING_EXPONENTIALS_H_
