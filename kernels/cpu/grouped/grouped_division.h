#ifndef BOWLINE_KERNELS_CPU_GROUPED_GROUPED_DIVISION_H_
#define BOWLINE_KERNELS_CPU_GROUPED_GROUPED_DIVISION_H_

// The pieces into which grouped products are divided, and the workspace of a thread, which computes one piece at a
// time. Both depend only on the signature and the tiles of the instruction set.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/matmul/gemm_tiles.h"
#include "kernels/signatures/grouped_signature.h"

namespace bowline::kernels {

// A piece of grouped_matmul is `block` rows of a group by `strip` columns of its matrix.
struct GroupedMatmulPieces {
  int64_t block, strip;
  size_t scratch_bytes;
};
GroupedMatmulPieces DivideGroupedMatmul(const GroupedMatmulShape& shape, int tile_n, const GemmTiles& tiles);

// A piece of grouped_outer is `strip` rows of a group's matrix.
struct GroupedOuterPieces {
  int64_t strip;
  size_t scratch_bytes;
};
GroupedOuterPieces DivideGroupedOuter(const GroupedOuterShape& shape, const GemmTiles& tiles);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_GROUPED_GROUPED_DIVISION_H_
