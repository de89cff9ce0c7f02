#ifndef BOWLINE_KERNELS_CPU_SAMPLING_EXPONENTIALS_H_
#define BOWLINE_KERNELS_CPU_SAMPLING_EXPONENTIALS_H_

// Passes over the logits of a row, which LogitsRow uses.

#include <cstdint>

#include "kernels/cpu/isa/isa.h"

namespace bowline::kernels {

// Logits per block. A sum is kept per block, so that finding a place in the total needs the terms of one block only.
inline constexpr int64_t kExponentialBlock = 512;

struct LogitsExtent {
  float largest;
  bool finite;  // whether all logits are finite; if not, `largest` has no meaning
};

struct ExponentialsTable {
  // The extent of `count` logits, at least one.
  LogitsExtent (*extent)(const float* logits, int64_t count);
  // The first index in [begin, count) with a logit of at least `least`; `count` if there is none.
  int64_t (*find_at_least)(const float* logits, int64_t begin, int64_t count, float least);
  // sums[b] = the sum, in f64, of exp((logits[i] - largest) * scale) over block b of kExponentialBlock logits.
  void (*sum_blocks)(const float* logits, int64_t count, double largest, double scale, double* sums);
  // out[i] = exp((logits[i] - largest) * scale) for `count` logits of one block; zeros follow up to kExponentialBlock.
  void (*block)(const float* logits, int64_t count, double largest, double scale, double* out);
};

BOWLINE_DECLARE_ISA_VARIANTS(ExponentialsTable, kExponentials);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_SAMPLING_EXPONENTIALS_H_
