#ifndef BOWLINE_KERNELS_CPU_MATMUL_PACKED_FORM_H_
#define BOWLINE_KERNELS_CPU_MATMUL_PACKED_FORM_H_

// The sizes of buffers of pack_matrix (packed_matrix.h), and checks of signatures that use such buffers.

#include "kernels/cpu/isa/isa.h"
#include "kernels/signatures/matmul_signature.h"

namespace bowline::kernels {

inline constexpr int64_t kPackedColumns = 48, kPackedSteps = 32;

// The number of elements of the buffer of a k x n matrix. The buffer has the matrix's element type.
int64_t PackedElements(int64_t k, int64_t n, DType dtype);

// Returns whether pack_matrix supports elements of `dtype` on a machine with `isa`.
bool CanPack(DType dtype, Isa isa);

// Returns kInvalidArgument unless argument `index` is a buffer of pack_matrix for k x n elements, of a type that a
// machine with `isa` packs.
absl::Status CheckPacked(const Signature& signature, size_t index, int64_t k, int64_t n, Isa isa);

// Returns kInvalidArgument for a product with `b_packed` if its B is no such buffer or its shape rules out packed B.
absl::Status CheckPackedProduct(const Signature& signature, const MatmulShape& shape, Isa isa);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_MATMUL_PACKED_FORM_H_
