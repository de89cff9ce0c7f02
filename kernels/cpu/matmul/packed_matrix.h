#ifndef BOWLINE_KERNELS_CPU_MATMUL_PACKED_MATRIX_H_
#define BOWLINE_KERNELS_CPU_MATMUL_PACKED_MATRIX_H_

// A second operand B that was copied ("packed") once, for many products, into the order in which a product reads it.
//
// k is divided into the product's blocks (blocks.h), and n into panels of tile_n columns. In the block that begins at
// word w0 of k and has wb words, panel p begins at word w0 * round_up(n, tile_n) + p * wb * tile_n of the buffer. It
// has wb rows of tile_n words; columns beyond n are zeros. No word depends on how a product is divided into pieces.
//
// The buffer (packed_form.h) has room for the tiles of every instruction set: n is rounded up to kPackedColumns. bf16
// is packed only for machines that multiply pairs of it, in one word; elsewhere the copy would be twice the plain size.
// AMX multiplies kPackedSteps of k at once, so zeros fill up the last block of bf16, and its wb includes them.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/half.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/matmul/packed_form.h"
#include "kernels/signatures/pack_shape.h"

namespace bowline::kernels {

// Writes panels [begin, end) of the source to `packed`.
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
