#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_TILES_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_TILES_H_

// Multiplies many rows of x, rounded to integers, by quantized weights in tiles, for AVX2 or better. quantized.h states
// the effect on results.

#include "kernels/cpu/quantized/integer_products.h"

namespace bowline::kernels {

inline constexpr int kPanelColumns = 48;

// The layout of a panel: kPanelColumns rows of weights, decoded. For each group (integer_products.h) it holds pairs of
// 16-bit integers in the order of records, each pair of all columns; then scales; then offsets if the format has them.
template <typename Format>
struct IntegerPanel {
  static constexpr int kPairs = IntegerRecord<Format>::kElements / 2,
                       kVectors = kPairs + (Format::kHasOffset ? 2 : 1),  // of 4 bytes for each column
      kGroupBytes = kVectors * kPanelColumns * 4;
};

struct IntegerTilesTable {
  // Computes columns [begin, end) of `out` for all rows. `panels` has room for the panels of these columns.
  void (*multiply)(const QuantizedMatmulShape& shape, const uint8_t* records, const uint8_t* weights, int64_t begin,
                   int64_t end, uint8_t* panels, void* out);
};
BOWLINE_DECLARE_ISA_VARIANTS(IntegerTilesTable, kIntegerTiles)
BOWLINE_DECLARE_BF16_VARIANT(IntegerTilesTable, kIntegerTiles)

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_TILES_H_
