#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_DIVISION_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_DIVISION_H_

// How quantized_matmul is divided, and its workspace: functions of the signature and of the instruction set.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa/isa.h"
#include "kernels/signatures/quantized_shape.h"

namespace bowline::kernels {

// Rows of x that multiply blocks as they are decoded.
inline constexpr int64_t kFewRows = 8;
// More rows of f32 than these are split where there is AMX.
inline constexpr int64_t kSomeRows = 48;

struct QuantizedDivision {
  bool few;              // see kFewRows
  bool integers;         // x and weights are multiplied as integers
  bool split;            // or as two numbers of bf16 each, by the tiles of AMX (split_tiles.h)
  bool amx;              // or by the dense product of AMX
  ElementType operands;  // that are multiplied
  int64_t strip;         // rows of weights that one thread multiplies at a time
  size_t x_bytes;        // workspace for x, where its type is another one than that of the operands
  size_t records_bytes;  // workspace for x as integers or split, behind x
  size_t rounded_bytes;  // and for which rows are
  size_t weights_bytes;  // workspace of a thread, for a strip of weights
  size_t thread_bytes;   // workspace of a thread, of which the product's is behind the weights

  size_t ScratchBytes(int threads) const {
    return x_bytes + records_bytes + rounded_bytes + thread_bytes * static_cast<size_t>(threads);
  }
};
// `plain`: neither as integers nor by AMX, in the workspace that lesser processors have for it.
QuantizedDivision DivideQuantizedMatmul(const QuantizedMatmulShape& shape, int threads, Isa isa, bool plain);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_DIVISION_H_
