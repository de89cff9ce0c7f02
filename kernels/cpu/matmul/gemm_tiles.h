#ifndef BOWLINE_KERNELS_CPU_MATMUL_GEMM_TILES_H_
#define BOWLINE_KERNELS_CPU_MATMUL_GEMM_TILES_H_

// The tile sizes of each instruction set's product (gemm.h). A compiler that plans for another machine calls
// GemmLevelOf; kernels state the same numbers beside their code, and a test compares both.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/half.h"
#include "kernels/cpu/isa/isa.h"
#include "types/element_type.h"

namespace bowline::kernels {

// The place that holds partial sums until all of k is added: C itself, if it is f32 with c_n == 1; scratch; or scratch
// of a product whose C is flipped (GemmOutput::flipped).
enum class GemmSums : uint8_t { kInC, kInScratch, kFlipped };

struct GemmTiles {
  int tile_m;      // pieces should begin at multiples of this in m
  int64_t unit_m;  // the most rows that are multiplied with a strip of B before the next strip
  // Whether threads pack B together, in chunks that stay in the last-level cache. Otherwise each thread packs B for
  // itself, so that B is in its own second-level cache, and no product is flipped.
  bool shares_b;
  // The time to pack one element of an operand, and to fetch one that is read in place, in multiply-adds.
  double pack_cost, read_cost;
  // Returns whether A is read in place, by its number of columns and its strides.
  bool (*reads_a)(int64_t k, int64_t stride_m, int64_t stride_k);
  // The scratch of a product in words of 4 bytes, a multiple of 16. Monotonic in m, n and k.
  size_t (*scratch_words)(int64_t m, int64_t n, int64_t k, GemmSums sums, bool b_packed);
};

struct GemmLevel {
  int tile_n;       // pieces should begin at multiples of this in n
  bool bf16_pairs;  // two bf16 to a word; else each is widened
  GemmTiles f32, bf16, f16;

  const GemmTiles& Of(ElementType operands) const { return ChooseByComputedType(operands, f32, bf16, f16); }
};

// AMX multiplies matrices of bf16 and f32 that have at least this many rows and columns, and f32 of so many steps of k:
// its tiles take 32 at once, and keep the promise of gemm.h from 23 on. tile_n is that of AVX512-BF16.
constexpr int64_t kLeastForAmx = 16, kLeastStepsForAmx = 64;

// The sizes of `isa`. kAmx has those of kAvx512Bf16, and in addition the tiles of GemmTilesOfAmx.
const GemmLevel& GemmLevelOf(Isa isa);
const GemmTiles& GemmTilesOfAmx(ElementType operands);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_MATMUL_GEMM_TILES_H_
