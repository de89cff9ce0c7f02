#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_SPLIT_TILES_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_SPLIT_TILES_H_

// Products of many rows of x with quantized weights in AMX tiles. Each element of x and each decoded weight is split
// into two numbers of bf16, and three of their four products are summed. quantized.h states the effect on results.

#include <cstdint>

#include "kernels/cpu/isa/isa.h"
#include "kernels/signatures/quantized_shape.h"

namespace bowline::kernels {

// Operands are split to groups of kExtent rows and kSteps elements of k, each of which has kPlanes registers. Groups of
// the same rows follow each other.
struct SplitTileSizes {
  static constexpr int64_t kExtent = 16, kSteps = 32, kPlanes = 2, kPlaneBytes = kExtent * kSteps * 2,
                           kGroupBytes = kPlanes * kPlaneBytes;
  // Elements of k that are multiplied at a time: two blocks of x of so many stay in the first-level cache while a strip
  // of weights passes, which stays in the second-level cache; rows of x for which weights are decoded once.
  static constexpr int64_t kChunk = 256, kStrip = 256, kSpan = 512;
  static constexpr int64_t kStripBytes = kStrip / kExtent * (kChunk / kSteps) * kGroupBytes;
};

struct SplitTilesTable {
  // Splits blocks [begin, end) of kExtent rows of x. Rows that have to be multiplied in f32 are not `split_rows`.
  void (*split)(const QuantizedMatmulShape& shape, const float* x, int64_t begin, int64_t end, uint8_t* planes,
                uint8_t* split_rows);
  // Columns [begin, end) of out, no more than kStrip, all rows. `scratch` has room for kStripBytes, and for sums of f32
  // of whole pairs of blocks of the columns and of kSpan rows.
  void (*multiply)(const QuantizedMatmulShape& shape, const uint8_t* planes, const uint8_t* weights, int64_t begin,
                   int64_t end, uint8_t* scratch, float* out);
};
BOWLINE_DECLARE_AMX(SplitTilesTable, kSplitTiles)

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_QUANTIZED_SPLIT_TILES_H_
