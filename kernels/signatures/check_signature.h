#ifndef BOWLINE_KERNELS_SIGNATURES_CHECK_SIGNATURE_H_
#define BOWLINE_KERNELS_SIGNATURES_CHECK_SIGNATURE_H_

// `check_offsets`, checked.

#include "kernels/registry/registry.h"

namespace bowline::kernels {

struct CheckOffsetsShape {
  int64_t offsets;  // their number
  int32_t rows;     // the largest offset that is allowed
};
absl::StatusOr<CheckOffsetsShape> ParseCheckOffsets(const Signature& signature);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_CHECK_SIGNATURE_H_
