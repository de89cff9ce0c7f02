#ifndef BOWLINE_KERNELS_CPU_MATMUL_GEMM_H_
#define BOWLINE_KERNELS_CPU_MATMUL_GEMM_H_

// A single-threaded product over any strides: C[m,n] = sum_k A[m,k] B[k,n], or C += with `accumulate`. Operands are
// f32, bf16 or f16; sums are f32. Blocks for caches and packed operands follow K. Goto and R. van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008.
//
// Every element is one chain of multiply-adds in ascending k, divided only at fixed blocks of k. So its bits depend on
// k, the type of the operands and the instruction set, but not on the tile, block or thread that computes it.
//
// Accuracy. Let u = 2^-24, p = 2^-126, g(n) = n u / (1 - n u), S the exact sum over the operands, and c0 the value that
// is accumulated onto. An element differs from S by at most
//   g(k + ceil(k / 768) + 1) (|c0| + sum_k |A B|) + k p.
// Each multiply-add of the chain and each join of two blocks rounds once (N. Higham, "Accuracy and Stability of
// Numerical Algorithms", 2nd ed., 3.1). Without an FMA instruction the multiplication rounds too, which the bound
// counts as one more step of the chain. The term k p is for AVX512-BF16 and AMX, whose instructions treat subnormal
// operands and results as zero. vdpbf16ps adds two products, exact in f32, one after the other: the bound holds, but
// the bits differ from those of operands widened to f32. tdpbf16ps (AMX) sums even and odd steps of each 32 steps
// separately, then adds both to the sum: the bits differ again, and are no chain's, but the bound holds.
//
// AMX also multiplies f32, by six products of bf16 (amx_split.h), if the signature allows it (bf16x6) and the product
// has at least 16 rows, 16 columns and 64 steps. An element then differs from S by at most
//   e (|c0| + sum_k |A B|) + (sum_k (|A| + |B|) + 7 k) p,
//   e = (1 + 2^-6 + 2^-13) g(16 + 6 ceil(min(k, 768) / 32) + ceil(k / 768)) + 1.01 u
// e is below the chain's bound from k = 23 on, and about half of it at k = 64. Its parts:
//   - The products that are left out are at most 1.01 u |A B|.
//   - The magnitudes of the six products sum to less than (1 + 2^-7 + 2^-17)^2 |A B|.
//   - tdpbf16ps rounds a product 15 times among 16 steps, and once where it adds even and odd steps. The sum is rounded
//     there and in each later tdpbf16ps of the k block, six for each 32 steps, and once in each join of two blocks.
//   - Bits of an operand below p are lost: none if it is 0 or at least 2^-103, but all except 8 at 2^-126.
//   - Each addition of a number that is not 0 may lose another p: six per step and twelve per 32 steps.
// An element that comes out as infinity or NaN is computed again by a chain, with the chain's bound. So no element
// overflows where a chain would not, and infinite or NaN operands give the results of f32, except that infinity times a
// subnormal number may be NaN. The bits of an element do not depend on other rows or columns.
//
// The error of these tiles is mostly half that of vectors, because sums are rounded less often. It is larger if a few
// products dominate a sum (matmul_split_test.cc), and if operands or products are below 2^-102.
//
// Products of f16 are exact in f32. A result of bf16 or f16 is rounded once more, to nearest even; f16 sums from 65520
// on become infinity.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/half.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/matmul/gemm_tiles.h"
#include "kernels/registry/registry.h"

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
  // 0: B is a plain matrix. Else B is a buffer of pack_matrix (packed_matrix.h) for a matrix of packed_n columns,
  // rounded up to tile_n, and this piece begins at column packed_n0 of it, a multiple of tile_n.
  int64_t packed_n = 0, packed_n0 = 0;
  // Rows of A that this thread will probably multiply next; null: not known.
  const void* next_a = nullptr;
  int64_t next_m = 0;
};

enum class GemmResult : uint8_t { kF32, kBf16, kF16, kEpilogue };

constexpr GemmResult GemmResultOf(DType type) {
  return ChooseByComputedType(type, GemmResult::kF32, GemmResult::kBf16, GemmResult::kF16);
}

// The destination of finished elements: memory, or an epilogue that also gets their indices in the whole product.
struct GemmOutput {
  GemmResult kind;
  void* c;  // element (0, 0) of this piece; unused with an epilogue
  TileEpilogue epilogue = nullptr;
  void* const* arguments = nullptr;
  int64_t m0 = 0, n0 = 0;  // the piece's first element in the whole product
  // The caller wants the transpose of the product, contiguous in m: the kernel transposes each block before it stores
  // it. Not with `accumulate`.
  bool flipped = false;
  // C is too large to stay in a cache until it is read, so stores bypass the caches: an ordinary store would first read
  // its cache line.
  bool streamed = false;
};

struct GemmFunctions {
  GemmTiles tiles;
  void (*run)(const GemmShape& shape, const void* a, const void* b, const GemmOutput& output, float* scratch);
};

struct GemmTable {
  int tile_n;  // pieces should begin at multiples of this in n
  GemmFunctions f32, bf16, f16;

  const GemmFunctions& Of(DType operands) const { return ChooseByComputedType(operands, f32, bf16, f16); }
};
BOWLINE_DECLARE_ISA_VARIANTS(GemmTable, kGemm)
BOWLINE_DECLARE_BF16_VARIANT(GemmTable, kGemm)

// tile_n is that of AVX512-BF16.
BOWLINE_DECLARE_AMX(GemmFunctions, kGemmBf16)
BOWLINE_DECLARE_AMX(GemmFunctions, kGemmF32)

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_MATMUL_GEMM_H_
