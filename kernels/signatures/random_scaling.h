#ifndef BOWLINE_KERNELS_SIGNATURES_RANDOM_SCALING_H_
#define BOWLINE_KERNELS_SIGNATURES_RANDOM_SCALING_H_

// Separate from the code that reads it off a signature, so that sources compiled for an instruction set may include it.

namespace bowline::kernels {

// out = bias + gain * value in f64, rounded once, and `below_limit` unless below `limit`.
struct RandomScaling {
  double bias, gain;
  float limit, below_limit;
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_RANDOM_SCALING_H_
