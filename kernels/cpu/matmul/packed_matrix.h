#ifndef BOWLINE_KERNELS_CPU_MATMUL_PACKED_MATRIX_H_
#define BOWLINE_KERNELS_CPU_MATMUL_PACKED_MATRIX_H_

// An operand B that was copied ("packed") into the order in which the product reads it, once for many products.
//
// k is divided into the product's blocks (blocks.h), n into panels of tile_n columns. The panel of columns p * tile_n +
// [0, tile_n) in the block that begins at word w0 and has wb words is at word w0 * round_up(n, tile_n) + p * wb *
// tile_n: wb rows of tile_n words, columns beyond n zero. No word depends on how a product is divided into pieces.
//
// The buffer (packed_form.h) is large enough for the tiles of every instruction set: n is rounded up to kPackedColumns.
// bf16 is packed only where the machine multiplies pairs of it, in one word; elsewhere a word would be twice its size.
// AMX multiplies kPackedSteps of k at once, which bf16 is filled up to with zeros: wb of the last block counts them.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/half.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/matmul/packed_form.h"
#include "kernels/signatures/pack_shape.h"

namespace bowline::kernels {

// Writes panels [begin, end) of every block.
using PackPanels = void (*)(const PackShape& shape, const void* source, int64_t begin, int64_t end, float* packed);

struct PackMatrixTable {
  int tile_n;
  bool bf16_pairs;            // two bf16 to a word; else each is widened
  PackPanels f32, bf16, f16;  // f16 for a single product, never kept

  PackPanels Of(DType type) const { return ChooseByComputedType(type, f32, bf16, f16); }
};
BOWLINE_DECLARE_ISA_VARIANTS(PackMatrixTable, kPackMatrix)
BOWLINE_DECLARE_BF16_VARIANT(PackMatrixTable, kPackMatrix)

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_MATMUL_PACKED_MATRIX_H_
