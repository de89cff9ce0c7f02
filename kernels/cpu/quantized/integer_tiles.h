#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_TILES_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_TILES_H_

// Multiplies many rows of x by blocks, as integers, with AVX512-VNNI in tiles. quantized.h states the effects on
// results.

#include "kernels/cpu/quantized/integer_products.h"

namespace bowline::kernels {

inline constexpr int kPanelColumns = 48;

// Weights of kPanelColumns rows are decoded to a panel, which has for each group of integer_products.h: pairs of
// integers of 16 bits, in the order of records, each of all columns; scales; offsets, if the format has them.
template <typename Format>
struct IntegerPanel {
  static constexpr int kPairs = IntegerRecord<Format>::kElements / 2,
                       kVectors = kPairs + (Format::kHasOffset ? 2 : 1),  // of 4 bytes for each column
      kGroupBytes = kVectors * kPanelColumns * 4;
};

struct IntegerTilesTable {
  // Columns [begin, end) of out, all rows; `panels` has room for their weights.
  void (*multiply)(const QuantizedMatmulShape& shape, const uint8_t* records, const uint8_t* weights, int64_t begin,
                   int64_t end, uint8_t* panels, void* out);
};
BOWLINE_DECLARE_BF16_VARIANT(IntegerTilesTable, kIntegerTiles)

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_TILES_H_
