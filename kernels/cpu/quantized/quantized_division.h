#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_DIVISION_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_DIVISION_H_

// The division of quantized_matmul among threads and its workspace, from the signature and the instruction set.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa/isa.h"
#include "kernels/signatures/quantized_shape.h"

namespace bowline::kernels {

// Up to this many rows of x, the product multiplies blocks in registers as it decodes them.
inline constexpr int64_t kFewRows = 8;
// With AMX, products with more rows of f32 than this split elements into numbers of bf16 (split_tiles.h).
inline constexpr int64_t kSomeRows = 48;

// More rows of f32 than these multiply decoded weights as floats where there is no AVX512-VNNI.
inline constexpr int64_t kManyRows = 128;

struct QuantizedDivision {
  bool few;              // at most kFewRows rows of x
  bool integers;         // multiplies x and weights as integers
  bool split;            // multiplies them as two numbers of bf16 each, in AMX tiles (split_tiles.h)
  bool amx;              // multiplies decoded weights by the dense product of AMX
  ElementType operands;  // element type in which x and weights are multiplied
  int64_t strip;         // rows of weights that one thread multiplies at a time
  size_t x_bytes;        // shared workspace: x, converted to `operands` if it has another type
  size_t records_bytes;  // shared workspace behind it: x as integers or split
  size_t rounded_bytes;  // shared workspace behind it: a flag per row, whether the row is in that form
  size_t weights_bytes;  // workspace per thread: a decoded strip of weights
  size_t thread_bytes;   // workspace per thread: the strip, then the workspace of the product

  size_t ScratchBytes(int threads) const {
    return x_bytes + records_bytes + rounded_bytes + thread_bytes * static_cast<size_t>(threads);
  }
};
// `plain`: divides as on a processor without integer products and AMX, for the workspace of such a processor.
QuantizedDivision DivideQuantizedMatmul(const QuantizedMatmulShape& shape, int threads, Isa isa, bool plain);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_DIVISION_H_
