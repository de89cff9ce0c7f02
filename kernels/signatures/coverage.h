#ifndef BOWLINE_KERNELS_SIGNATURES_COVERAGE_H_
#define BOWLINE_KERNELS_SIGNATURES_COVERAGE_H_

#include "absl/status/status.h"
#include "kernels/registry/registry.h"

namespace bowline::kernels {

// Of a signature that a device accepts: OK if a launch writes every element of each argument that it writes and does
// not read. kInvalidArgument names the kernel and the part left out. Shapes say so of all kernels but `matmul`, which
// may step over elements of its result.
absl::Status CheckCoverage(const Signature& signature);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_COVERAGE_H_
