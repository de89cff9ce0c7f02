#ifndef BOWLINE_KERNELS_CPU_MATMUL_PACKED_CHECK_H_
#define BOWLINE_KERNELS_CPU_MATMUL_PACKED_CHECK_H_

#include "kernels/signatures/matmul_signature.h"

namespace bowline::kernels {

// Refuses (kInvalidArgument) an argument `index` that is not a buffer of pack_matrix for k x n elements, of a type that
// this machine packs.
absl::Status CheckPacked(const Signature& signature, size_t index, int64_t k, int64_t n);

// Refuses a product with `b_packed` whose B is no such buffer, or that packed operands have no order of additions for.
absl::Status CheckPackedProduct(const Signature& signature, const MatmulShape& shape);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_MATMUL_PACKED_CHECK_H_
