#ifndef BOWLINE_KERNELS_CPU_MATMUL_GEMM_H_
#define BOWLINE_KERNELS_CPU_MATMUL_GEMM_H_

// Single-threaded product over any strides: C[m,n] (+)= sum_k A[m,k] B[k,n], operands f32, bf16 or f16, accumulated in
// f32. Blocked for the caches and packed as in K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", ACM TOMS 34(3), 2008.
//
// Every element is one chain of multiply-adds in ascending k, divided only at fixed blocks of k, so that its bits
// depend on k, the operands' type and the instruction set but not on where in which tile, block or thread it falls.
//
// Accuracy. With u = 2^-24 and p = 2^-126, an element differs from the exact sum S over the operands by
// at most g(k + ceil(k / 768) + 1) (|c0| + sum_k |A B|) + k p, where g(n) = n u / (1 - n u) and c0 is what is
// accumulated onto: each of the chain's multiply-adds and each join of two blocks rounds once (N. Higham, "Accuracy and
// Stability of Numerical Algorithms", 2nd ed., 3.1; without an FMA instruction the multiplication rounds too, one more
// step in the chain's length). p is for AVX512-BF16: vdpbf16ps takes subnormal operands and results as zero. Its two
// products of a pair are exact in f32 and it adds them one after the other, so the bound is the same; the bits are not
// those of operands widened to f32. tdpbf16ps (AMX) takes subnormal ones as zero too. It adds the products of even
// steps and those of odd ones of each 32 steps of a k block by themselves, then both to the sum: other bits, no longer
// a chain, and the same bound.
//
// AMX multiplies f32, too, by six products of bf16 (amx_split.h) where the signature allows it (bf16x6) and the product
// has at least 16 rows, 16 columns and 64 steps. There an element differs from S by at most
//   e (|c0| + sum_k |A B|) + (sum_k (|A| + |B|) + 7 k) p,
//   e = (1 + 2^-6 + 2^-13) g(16 + 6 ceil(min(k, 768) / 32) + ceil(k / 768)) + 1.01 u
// e is less than the promise of a chain from k = 23 on, and about half of it at 64. Its parts:
//   - Products that are left out are 1.01 u |A B|.
//   - The magnitudes of the six add up to less than (1 + 2^-7 + 2^-17)^2 |A B|.
//   - In its own tdpbf16ps a product is rounded 15 times among 16 steps and once where even and odd ones meet; then the
//     sum is, there and in each later one of the k block, of which 32 steps have six; then each join of two blocks.
//   - Bits of an operand that are below p are lost. All are there if it is 0 or at least 2^-103, but only 8 at 2^-126.
//   - Each addition of a number that is not 0 may lose p once more: six for each step and twelve for each 32.
// An element that comes out as infinity or NaN is computed once more by a chain, with its bound: so none overflows
// where a chain would not, and operands that are infinities or NaNs do to C what they do in f32 (times a subnormal
// number infinity may be NaN). No element's bits depend on other rows or columns.
//
// In tiles the error is mostly half of that in vectors, because sums are rounded less often. It is above it where a few
// products make up most of a sum (matmul_split_test.cc), and where operands or products are below 2^-102.
//
// f16 is widened to f32, exactly, and its products are exact there. A result of 16 bits is rounded once more, to
// nearest even; in f16 a sum of 65520 or more becomes infinity.

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
