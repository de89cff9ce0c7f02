#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_H_

// How products with matrices of blocks are computed. Weights are decoded as types/block_formats.h says and multiplied
// in f32; x is never quantised.
//
// Few rows of x (kFewRows) multiply blocks as they are decoded in registers: each element of the result is the sum of
// the lanes of a vector, each lane a chain of multiply-adds in ascending k. Its bits depend on its row of x, its row of
// weights and the instruction set, and not on how many rows there are, nor on threads.
//
// More rows multiply strips of weights that are decoded to memory first, by the tiles of the dense product (gemm.h),
// whose bits are those of a dense product with the decoded weights. These are f32; where x is bf16 and the processor
// multiplies pairs of bf16, they are rounded to bf16, so that the product is as fast as the dense one of bf16.
//
// Accuracy. With u = 2^-24 and g(n) = n u / (1 - n u), an element of f32 differs from the exact sum over exact weights
// scale * q + offset by at most g(k + 4 + ceil(k / 768)) sum_k |x| (|scale q| + |offset|): gemm.h's bound, in which the
// weights are rounded once. Weights that are rounded to bf16 add 2^-8 of the same sum. A result of bf16 is rounded once
// more.

#include <cstdint>

#include "kernels/cpu/isa/isa.h"
#include "kernels/signatures/quantized_shape.h"

namespace bowline::kernels {

struct QuantizedTable {
  // Decodes `blocks` consecutive blocks to `to`, f32 or bf16.
  void (*decode)(ElementType format, const uint8_t* bytes, int64_t blocks, ElementType to, void* out);
  // out[count] of bf16.
  void (*widen)(const uint16_t* values, int64_t count, float* out);
  // Columns [begin, end) of out, all rows, which are no more than kFewRows; x in f32.
  void (*few)(const QuantizedMatmulShape& shape, const float* x, const uint8_t* weights, int64_t begin, int64_t end,
              void* out);
};
BOWLINE_DECLARE_ISA_VARIANTS(QuantizedTable, kQuantized)

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_H_
