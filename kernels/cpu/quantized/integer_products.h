#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_PRODUCTS_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_PRODUCTS_H_

// Multiplies rows of x, rounded to integers, few at a time, by blocks, with AVX2 or better. quantized.h states the
// effects on results.

#include <cstdint>

#include "kernels/cpu/isa/isa.h"
#include "kernels/signatures/quantized_shape.h"
#include "types/block_layouts.h"

namespace bowline::kernels {

// x is kept as a record for each group of a row: its integers of 16 bits, in the order that decoding weights gives;
// four sums of what each lane of a vector multiplies; its scale; what it adds up to. Records of a group of all rows lie
// side by side.
template <typename Format>
struct IntegerRecord {
  static constexpr int kElements = kRunElements * Format::kRunsOfGroup, kSums = 2 * kElements, kScale = kSums + 16,
                       kTotal = kScale + 4, kBytes = kScale + 16;
};

struct IntegerTable {
  // Rounds rows [begin, end) of x, f32, to records. Those that have to be multiplied in f32 are not `rounded`.
  void (*round)(const QuantizedMatmulShape& shape, const float* x, int64_t begin, int64_t end, uint8_t* records,
                uint8_t* rounded);
  // Columns [begin, end) of out, all rows, which are no more than kFewRows.
  void (*few)(const QuantizedMatmulShape& shape, const uint8_t* records, const uint8_t* weights, int64_t begin,
              int64_t end, void* out);
};
BOWLINE_DECLARE_ISA_VARIANTS(IntegerTable, kIntegerProducts)
BOWLINE_DECLARE_BF16_VARIANT(IntegerTable, kIntegerProducts)

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_PRODUCTS_H_
