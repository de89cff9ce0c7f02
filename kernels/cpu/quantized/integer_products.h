#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_PRODUCTS_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_PRODUCTS_H_

// Integer products of at most kFewRows rows of x, rounded to integers, with quantized weights, for AVX2 or better.
// quantized.h states the effect on results.

#include <cstdint>

#include "kernels/cpu/isa/isa.h"
#include "kernels/signatures/quantized_shape.h"
#include "types/block_layouts.h"

namespace bowline::kernels {

// The layout of a record, the form of one group of a row of x. It holds the group's integers of 16 bits, in the order
// in which weights are decoded; four partial sums, one per lane of a vector; the group's scale; the sum of the group.
// The records of the same group of all rows are adjacent.
template <typename Format>
struct IntegerRecord {
  static constexpr int kElements = kRunElements * Format::kRunsOfGroup, kSums = 2 * kElements, kScale = kSums + 16,
                       kTotal = kScale + 4, kBytes = kScale + 16;
};

struct IntegerTable {
  // Rounds rows [begin, end) of x, f32, to records. Sets rounded[row] to 0 for rows that must be multiplied in f32.
  void (*round)(const QuantizedMatmulShape& shape, const float* x, int64_t begin, int64_t end, uint8_t* records,
                uint8_t* rounded);
  // Computes columns [begin, end) of all rows of `out`, at most kFewRows.
  void (*few)(const QuantizedMatmulShape& shape, const uint8_t* records, const uint8_t* weights, int64_t begin,
              int64_t end, void* out);
};
BOWLINE_DECLARE_ISA_VARIANTS(IntegerTable, kIntegerProducts)
BOWLINE_DECLARE_BF16_VARIANT(IntegerTable, kIntegerProducts)

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_PRODUCTS_H_
