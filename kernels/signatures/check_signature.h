#ifndef BOWLINE_KERNELS_SIGNATURES_CHECK_SIGNATURE_H_
#define BOWLINE_KERNELS_SIGNATURES_CHECK_SIGNATURE_H_

// `check_offsets` and `check_ids`, checked.

#include "kernels/registry/registry.h"

namespace bowline::kernels {

struct DataCheckShape {
  int64_t count;  // the number of offsets or ids
  int32_t rows;   // the number of rows, which none of them may exceed
};
// Offsets [G] that may be `rows` at most.
absl::StatusOr<DataCheckShape> ParseCheckOffsets(const Signature& signature);
// Ids [N...] below `rows`.
absl::StatusOr<DataCheckShape> ParseCheckIds(const Signature& signature);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_CHECK_SIGNATURE_H_
