#ifndef BOWLINE_KERNELS_SIGNATURES_GROUPED_SIGNATURE_H_
#define BOWLINE_KERNELS_SIGNATURES_GROUPED_SIGNATURE_H_

// `grouped_matmul` and `grouped_outer`, checked. Operands of a type of types/computed_types.h, results f32 or
// of that type.

#include "kernels/registry/registry.h"

namespace bowline::kernels {

struct GroupedMatmulShape {
  int64_t rows, k, n, groups;  // groups that offsets speak of; there may be more matrices
  bool transposed;             // matrices are [n, k]
  bool leaves_rows_out;        // rows behind the last group are not written; otherwise they become zeros
  DType operands, result;
};

absl::StatusOr<GroupedMatmulShape> ParseGroupedMatmul(const Signature& signature);

struct GroupedOuterShape {
  int64_t rows, m, n;
  int64_t groups, matrices;  // groups that offsets speak of, and matrices of the result, which may be more
  DType operands, result;
};

absl::StatusOr<GroupedOuterShape> ParseGroupedOuter(const Signature& signature);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_GROUPED_SIGNATURE_H_
