#ifndef BOWLINE_KERNELS_SIGNATURES_QUANTIZED_SIGNATURE_H_
#define BOWLINE_KERNELS_SIGNATURES_QUANTIZED_SIGNATURE_H_

// `quantized_matmul` and `quantized_gather`, checked. Both have a matrix of blocks, u8 [rows, blocks of a row, bytes of
// a block], and the text attribute `format`, the name of the blocks' type (types/block_formats.h).

#include "kernels/registry/registry.h"
#include "kernels/signatures/quantized_shape.h"

namespace bowline::kernels {

// x [M, K] f32 or bf16, weights [N, K in blocks, bytes]; out [M, N] f32 or of the type of x.
absl::StatusOr<QuantizedMatmulShape> ParseQuantizedMatmul(const Signature& signature);
// table [V, K in blocks, bytes], ids [T...] i32; out [T..., K] f32 or bf16.
absl::StatusOr<QuantizedGatherShape> ParseQuantizedGather(const Signature& signature);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_QUANTIZED_SIGNATURE_H_
