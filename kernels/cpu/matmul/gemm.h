#ifndef BOWLINE_KERNELS_CPU_MATMUL_GEMM_H_
#define BOWLINE_KERNELS_CPU_MATMUL_GEMM_H_

// Single-threaded f32 GEMM over any strides: C[m,n] (+)= sum_k A[m,k] B[k,n]. Blocked for the caches and packed as in
// K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008.
// Every element is one chain of multiply-adds in ascending k, cut only at fixed k blocks, so that its bits depend on k
// and the instruction set but not on where in which tile, block or thread it falls.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa/isa.h"

namespace bowline::kernels {

struct GemmShape {
  int64_t m, n, k;
  int64_t a_m, a_k;  // strides in elements
  int64_t b_k, b_n;
  int64_t c_m, c_n;
  bool accumulate;
  // The whole product has one row (m == 1) and B is contiguous in k: each element is then a dot product over vectors of
  // k, which reads B once and in order. A different chain of additions, so a property of the product, not of a piece.
  bool dot = false;
};

struct GemmTable {
  int tile_m, tile_n;                                         // natural multiples for cutting m and n
  size_t (*scratch_floats)(int64_t m, int64_t n, int64_t k);  // monotonic in m, n and k; a multiple of 16
  void (*run)(const GemmShape& shape, const float* a, const float* b, float* c, float* scratch);
};
BOWLINE_DECLARE_ISA_VARIANTS(GemmTable, kGemm)

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_MATMUL_GEMM_H_
