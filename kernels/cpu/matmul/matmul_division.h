#ifndef BOWLINE_KERNELS_CPU_MATMUL_MATMUL_DIVISION_H_
#define BOWLINE_KERNELS_CPU_MATMUL_MATMUL_DIVISION_H_

// The division of a product among threads, and the workspace that it needs. Both depend only on the signature and the
// instruction set, so that a compiler that plans for another machine gets the same answers.

#include <cstdint>

#include "kernels/cpu/matmul/gemm_tiles.h"
#include "kernels/signatures/matmul_signature.h"

namespace bowline::kernels {

// The division of each matrix of the batch into m_parts x n_parts pieces, each of which is the work of one thread at a
// time. It does not change a bit of the result (gemm.h).
struct MatmulGrid {
  int64_t m_parts = 1, n_parts = 1;
};

// How threads share a product whose B is packed: chunks of columns, each packed by all threads together, whose rows are
// handed out in units. Unlike pieces of a grid, nothing is packed twice, and a thread that was interrupted does less.
struct MatmulSharing {
  int64_t chunk_n = 0;  // columns; 0: the product is divided into a grid instead
  int64_t units = 0;
  int64_t unit_m = 0;  // rows of the largest unit
};

struct MatmulDivision {
  MatmulShape shape;     // the product that the kernel computes, after a swap
  bool swapped = false;  // A and B are exchanged, to compute the transpose of C
  bool flipped = false;  // GemmOutput::flipped: C is contiguous in m
  bool dot = false;      // GemmShape::dot
  int threads = 1;
  MatmulSharing sharing;
  MatmulGrid grid;
  int64_t piece_m = 0, piece_n = 0;
  size_t scratch_bytes = 0;  // workspace per thread
  size_t shared_bytes = 0;   // workspace for a packed chunk, shared by all threads

  size_t ScratchBytes() const;
};

// `tiles` are those of `level`, or of AMX.
MatmulDivision DivideMatmul(const MatmulShape& shape, bool has_epilogue, int threads, const GemmLevel& level,
                            const GemmTiles& tiles);

// Returns whether a machine with `isa` multiplies by AMX: a property of the whole product, so that its bits depend on
// nothing else.
inline bool IsForAmx(const MatmulShape& shape, Isa isa) {
  const bool has_tiles = shape.operands == DType::kBF16 || (shape.bf16x6 && shape.k >= kLeastStepsForAmx);
  return isa >= Isa::kAmx && has_tiles && shape.m >= kLeastForAmx && shape.n >= kLeastForAmx;
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_MATMUL_MATMUL_DIVISION_H_
