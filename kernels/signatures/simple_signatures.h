#ifndef BOWLINE_KERNELS_SIGNATURES_SIMPLE_SIGNATURES_H_
#define BOWLINE_KERNELS_SIGNATURES_SIMPLE_SIGNATURES_H_

// `fill` and `rope_angles`, checked.

#include "kernels/registry/registry.h"

namespace bowline::kernels {

struct FillShape {
  DType element;  // one of types/computed_types.h, or i32
  double value;   // an integer for i32
  int64_t count;
};
absl::StatusOr<FillShape> ParseFill(const Signature& signature);

struct RopeAnglesShape {
  DType element;  // one of types/computed_types.h
  double theta;   // finite and positive
  int64_t positions, half;
  // The kernel scales each frequency f to f * (s + (1 - s) * rate), with s = clamp(f * slope - offset, 0, 1). The
  // defaults leave f as it is.
  double rate = 1, slope = 0, offset = 0;
};
absl::StatusOr<RopeAnglesShape> ParseRopeAngles(const Signature& signature);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_SIMPLE_SIGNATURES_H_
