#ifndef BOWLINE_KERNELS_CPU_MATMUL_PACKED_FORM_H_
#define BOWLINE_KERNELS_CPU_MATMUL_PACKED_FORM_H_

// The buffers of pack_matrix (packed_matrix.h), by their sizes alone.

#include "kernels/cpu/isa/isa.h"
#include "kernels/signatures/matmul_signature.h"

namespace bowline::kernels {

inline constexpr int64_t kPackedColumns = 48, kPackedSteps = 32;

// The buffer of a matrix of k x n elements has the matrix's type and this many elements.
int64_t PackedElements(int64_t k, int64_t n, DType dtype);

// Whether a machine with `isa` has packed matrices of `dtype`.
bool CanPack(DType dtype, Isa isa);

// Refuses (kInvalidArgument) an argument `index` that is not a buffer of pack_matrix for k x n elements, of a type that
// a machine with `isa` packs.
absl::Status CheckPacked(const Signature& signature, size_t index, int64_t k, int64_t n, Isa isa);

// Refuses a product with `b_packed` whose B is no such buffer, or that packed operands have no order of additions for.
absl::Status CheckPackedProduct(const Signature& signature, const MatmulShape& shape, Isa isa);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_MATMUL_PACKED_FORM_H_
