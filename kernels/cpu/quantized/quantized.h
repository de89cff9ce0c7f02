#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_H_

// Products of x with quantized weights, which are stored in blocks (types/block_formats.h).
//
// The bits of a result depend on its row of x, its row of weights, the instruction set, and on the range of the number
// of rows of x: up to kFewRows, up to kSomeRows, or more. Neither the exact number nor the threads matter.
//
// With AMX more than some rows of f32 are split (split_tiles.h): an element of x, and one of the decoded weights, is
// the sum of two numbers of bf16 and a rest that is left out, x1 + x2 and w1 + w2, and x1 w1 + x1 w2 + x2 w1 is summed
// up. A row is multiplied in f32 instead as below, where a group has 32 elements in all formats.
//
// Otherwise they are products of integers: with AVX2 those of few rows, with AVX512-VNNI all. A group of x, which is
// the elements that share a scale of the weights, is rounded to integers of 16 bits times a scale of its own, max |x| /
// 32767; sums over a group are exact, and are added up in f32. A row is multiplied in f32 instead, as few rows are
// without AVX2, if max |x| of one of its groups is beyond [2^-100, 2^64) and not zero, which is so where an element is
// infinite or no number. Few rows multiply blocks as they are decoded in registers (integer_products.h), more of them
// tiles (integer_tiles.h), for which blocks are decoded to memory.
//
// Without either, and where more rows of x are bf16:
// - Few rows multiply blocks as they are decoded in registers: each element of the result is the sum of the lanes of a
//   vector, each lane a chain of multiply-adds of f32 in ascending k.
// - More rows multiply strips of weights that are decoded to memory first, by the tiles of the dense product (gemm.h),
//   whose bits are those of a dense product with the decoded weights. These are f32; where x is bf16 and the processor
//   multiplies pairs or tiles of bf16, they are rounded to bf16, so that the product is as fast as the dense one of
//   bf16.
//
// Accuracy. With u = 2^-24 and g(n) = n u / (1 - n u), an element of f32 differs from the exact sum over exact weights
// scale * q + offset by at most g(k + 4 + ceil(k / 768)) sum_k |x| (|scale q| + |offset|): gemm.h's bound, in which the
// weights are rounded once. Weights that are rounded to bf16 add 2^-8 of the same sum. A result of bf16 is rounded once
// more.
//
// As integers it differs by at most sum_k r |scale q + offset| + g(k / 16 + 8) sum_k (|x| + r) (|scale q| + |offset|),
// where r is max |x| of the group / 65534. Rounding adds half a unit of the scale to x, which is r but for the rounding
// of the scale; the scale, its inverse and the product with that are three roundings of x in f32. The sum of a lane is
// rounded to f32 and multiplied with the scale of x; then as many multiply-adds as there are groups, at most k / 16, or
// k / 32 for scales and as many for offsets, in few rows with AVX-512 side by side; and two additions of lanes.
//
// Split it differs by at most sum_k (2^-15 (1 + 2^-8) |x| |w| + 2^-25 max |x| (|scale q| + |offset|)) + g(k / 4 + 32)
// sum_k |x| (|scale q| + |offset|), with max |x| of the group: the rests are at most 2^-17 of x and of w, x2 w2 is at
// most 2^-16 of x w, and tiles take parts of x below 2^-126 for zero. Weights are multiples of 2^-24, and so are their
// parts. Three products pass 32 additions of a register, and then one for each 32 elements each; what exceeds these
// numbers allows for |x1| and |x2| that add up to more than |x|. Of random elements it differs by a fifth of what
// integers do.
//
// Results below 2^-126 may be lost in each step of any, which adds k 2^-126, or 3 k 2^-126 where x is split. Scales of
// weights that are infinite or no number give results that are one of the two.

#include <cstdint>

#include "kernels/cpu/isa/isa.h"
#include "kernels/signatures/quantized_shape.h"

namespace bowline::kernels {

struct QuantizedTable {
  // Decodes `blocks` consecutive blocks to `to`, f32 or bf16.
  void (*decode)(ElementType format, const uint8_t* bytes, int64_t blocks, ElementType to, void* out);
  // Widens `count` values of bf16 to f32.
  void (*widen)(const uint16_t* values, int64_t count, float* out);
  // Computes columns [begin, end) of all rows of `out`, at most kFewRows; x is f32.
  void (*few)(const QuantizedMatmulShape& shape, const float* x, const uint8_t* weights, int64_t begin, int64_t end,
              void* out);
};
BOWLINE_DECLARE_ISA_VARIANTS(QuantizedTable, kQuantized)

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_H_
