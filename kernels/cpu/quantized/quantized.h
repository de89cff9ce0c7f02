#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_H_

// Products of x with quantized weights, which are stored in blocks (types/block_formats.h).
//
// The bits of a result depend on its row of x, its row of weights, the instruction set, and the class of the number of
// rows of x: few (up to kFewRows), some (up to kSomeRows), many (up to kManyRows) or more. The exact number and the
// threads do not matter.
//
// Split products: with AMX, for more than kSomeRows rows of f32 (split_tiles.h). An element of x is split into two
// numbers of bf16 and a rest that is dropped, x1 + x2; a decoded weight into w1 + w2. A result is the sum of
// x1 w1 + x1 w2 + x2 w1. A row is multiplied in f32 instead under the condition below, with groups of 32 elements in
// all formats.
//
// Products of integers: otherwise, with AVX2 for few rows and for up to kManyRows rows of f32, with AVX512-VNNI for few
// rows and for all rows of f32. The elements of x that share a scale of the weights form a group. A group is rounded to
// integers of 16 bits times its own scale, max |x| / 32767. Sums over a group are exact, and are added up in f32. A row
// is multiplied in f32 instead, as few rows are without AVX2, if max |x| of one of its groups is neither zero nor in
// [2^-100, 2^64), for instance because an element is infinite or NaN. Few rows multiply blocks that are decoded in
// registers (integer_products.h); more rows use tiles (integer_tiles.h), for which blocks are decoded to memory.
//
// Products of floats: otherwise, so always for more than few rows of bf16.
// - Few rows multiply blocks that are decoded in registers. An element of the result is the sum of the lanes of a
//   vector, and each lane is a chain of multiply-adds of f32 in ascending k.
// - More rows multiply strips of weights that are decoded to memory, by the tiles of the dense product (gemm.h). The
//   bits are those of a dense product with the decoded weights. Decoded weights are f32; but if x is bf16 and the
//   processor multiplies pairs or tiles of bf16, they are rounded to bf16, so that the product is as fast as the dense
//   one.
//
// Accuracy. Let u = 2^-24 and g(n) = n u / (1 - n u). A result of f32 differs from the exact sum over exact weights
// scale * q + offset by at most g(k + 4 + ceil(k / 768)) sum_k |x| (|scale q| + |offset|): gemm.h's bound, plus one
// rounding of the weights. Weights rounded to bf16 add 2^-8 of the same sum. A result of bf16 is rounded once more.
//
// Products of integers differ by at most sum_k r |scale q + offset| + g(k / 16 + 8) sum_k (|x| + r) (|scale q| +
// |offset|), where r is max |x| of the group / 65534. Rounding x adds half a unit of its scale: r, but for the rounding
// of the scale. The scale, its inverse and the product with the inverse are three roundings of x in f32. The sum of a
// lane is rounded to f32 and multiplied by the scale of x. Then come as many multiply-adds as there are groups, at most
// k / 16, or k / 32 for scales and k / 32 for offsets (side by side for few rows with AVX-512), and two additions of
// lanes.
//
// Split products differ by at most sum_k (2^-15 (1 + 2^-8) |x| |w| + 2^-25 max |x| (|scale q| + |offset|)) +
// g(k / 4 + 32) sum_k |x| (|scale q| + |offset|), with max |x| of the group. The rests are at most 2^-17 of x and w,
// x2 w2 is at most 2^-16 of x w, and tiles treat parts of x below 2^-126 as zero. Weights and their parts are multiples
// of 2^-24. Three products pass 32 additions in a register each, then one per 32 elements; the rest of g's argument
// allows for |x1| + |x2| > |x|. For random elements the difference is a fifth of that of products of integers.
//
// All methods may lose results below 2^-126 in each step: this adds k 2^-126, or 3 k 2^-126 for split products.
// Infinite or NaN scales of weights give results that are infinite or NaN.

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
