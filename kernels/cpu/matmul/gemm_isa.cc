#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/matmul/gemm.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

// The accumulators fill the registers, leaving room for one row of B and one broadcast element of A.
#if defined(__AVX512F__)
constexpr int kTileM = 12, kVecs = 2;  // 24 of 32
#elif defined(__AVX2__)
constexpr int kTileM = 4, kVecs = 3;  // 12 of 16
#else
constexpr int kTileM = 4, kVecs = 2;  // 8 of 16
#endif
constexpr int kTileN = kVecs * kLanes;

constexpr int64_t kBlockK = 384;          // a panel of A stays in L1
constexpr int64_t kBlockM = 16 * kTileM;  // a block of A stays in L2
constexpr int64_t kBlockN = 768;          // a block of B stays in L2 or L3; a multiple of every kTileN
static_assert(kBlockN % kTileN == 0);

int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Equal blocks rather than full ones and a remainder. A function of k alone: see the promise in gemm.h.
int64_t BlockK(int64_t k) {
  const int64_t blocks = (k + kBlockK - 1) / kBlockK;
  return (k + blocks - 1) / blocks;
}

template <int kRows, bool kAccumulate>
void Tile(int64_t steps, const float* a, const float* b, int64_t b_step, float* c, int64_t ld) {
  MultiplyInto<kRows, kVecs, 1, kTileM, kAccumulate>(steps, a, b, b_step, c, ld);
}

using TileFunction = void (*)(int64_t, const float*, const float*, int64_t, float*, int64_t);

// Indexed by [accumulate][rows - 1]: few rows cost in proportion, which is what decoding one token needs.
template <int... kIndex>
struct TileFunctions {
  static constexpr TileFunction table[2][sizeof...(kIndex)] = {{&Tile<kIndex + 1, false>...},
                                                               {&Tile<kIndex + 1, true>...}};
};
template <int kCount, int... kIndex>
struct MakeTileFunctions : MakeTileFunctions<kCount - 1, kCount - 1, kIndex...> {};
template <int... kIndex>
struct MakeTileFunctions<0, kIndex...> : TileFunctions<kIndex...> {};

// One tile of C, possibly narrower than kTileN or with strided columns.
void ComputeTile(const GemmShape& shape, int64_t rows, int64_t columns, int64_t steps, const float* a, const float* b,
                 int64_t b_step, float* c, bool accumulate) {
  const auto& functions = MakeTileFunctions<kTileM>::table;
  if (columns == kTileN && shape.c_n == 1) {
    functions[accumulate][rows - 1](steps, a, b, b_step, c, shape.c_m);
    return;
  }
  alignas(64) float tile[kTileM * kTileN];
  functions[0][rows - 1](steps, a, b, b_step, tile, kTileN);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      float& out = c[i * shape.c_m + j * shape.c_n];
      out = accumulate ? out + tile[i * kTileN + j] : tile[i * kTileN + j];
    }
  }
}

// c[j] (+)= a . b(j) for columns of B that are contiguous in k; four at a time share the loads of `a`.
void DotColumns(const GemmShape& shape, const float* a, const float* b, float* c) {
  constexpr int kColumns = 4;
  for (int64_t j0 = 0; j0 < shape.n; j0 += kColumns) {
    const float* column[kColumns];
    for (int j = 0; j < kColumns; ++j) column[j] = b + Smaller(j0 + j, shape.n - 1) * shape.b_n;
    Vec sum[kColumns][2] = {};
    int64_t k = 0;
    for (; k + 2 * kLanes <= shape.k; k += 2 * kLanes) {
#pragma clang loop unroll(full)
      for (int j = 0; j < kColumns; ++j) {
        sum[j][0] = MulAdd(Load(a + k), Load(column[j] + k), sum[j][0]);
        sum[j][1] = MulAdd(Load(a + k + kLanes), Load(column[j] + k + kLanes), sum[j][1]);
      }
    }
    for (int64_t j = 0; j < Smaller(kColumns, shape.n - j0); ++j) {
      float dot = ReduceAdd(sum[j][0] + sum[j][1]);
      for (int64_t tail = k; tail < shape.k; ++tail) dot += a[tail] * column[j][tail];
      float& out = c[(j0 + j) * shape.c_n];
      out = shape.accumulate ? out + dot : dot;
    }
  }
}

// One row of C over columns that B holds contiguously: wide enough that each step reads several lines of B in order.
constexpr int kWideVecs = kVecs == 3 ? 6 : 8;
static_assert(kWideVecs % kVecs == 0, "what is left begins at a tile");
int64_t WideRow(const GemmShape& shape, int64_t columns, int64_t steps, const float* a, const float* b, float* c,
                bool accumulate) {
  constexpr int64_t kWide = kWideVecs * kLanes;
  int64_t j = 0;
  for (; j + kWide <= columns; j += kWide) {
    if (accumulate) {
      MultiplyInto<1, kWideVecs, 1, kTileM, true>(steps, a, b + j, shape.b_k, c + j, 0);
    } else {
      MultiplyInto<1, kWideVecs, 1, kTileM, false>(steps, a, b + j, shape.b_k, c + j, 0);
    }
  }
  return j;
}

size_t ScratchFloats(int64_t m, int64_t n, int64_t k) {
  const int64_t block_k = Smaller(k, kBlockK);
  return static_cast<size_t>(RoundUp(Smaller(RoundUp(m, kTileM), kBlockM) * block_k, 16) +
                             RoundUp(Smaller(RoundUp(n, kTileN), kBlockN) * block_k, 16));
}

void Run(const GemmShape& shape, const float* a, const float* b, float* c, float* scratch) {
  if (shape.dot) return DotColumns(shape, a, b, c);
  float* packed_a = scratch;
  float* packed_b = scratch + RoundUp(Smaller(RoundUp(shape.m, kTileM), kBlockM) * Smaller(shape.k, kBlockK), 16);
  const int64_t block_k = BlockK(shape.k);
  // A panel of B that is used by a single tile is not worth a copy if its rows are contiguous.
  const bool direct_b = shape.m <= kTileM && shape.b_n == 1;

  for (int64_t n0 = 0; n0 < shape.n; n0 += kBlockN) {
    const int64_t nb = Smaller(shape.n - n0, kBlockN);
    const int64_t whole = direct_b ? nb / kTileN * kTileN : 0;  // columns that are read in place
    for (int64_t k0 = 0; k0 < shape.k; k0 += block_k) {
      const int64_t kb = Smaller(shape.k - k0, block_k);
      const bool accumulate = shape.accumulate || k0 > 0;
      const float* b_block = b + k0 * shape.b_k + n0 * shape.b_n;
      PackPanels<kTileN>(nb - whole, kb, b_block + whole * shape.b_n, shape.b_n, shape.b_k, 1.0f, packed_b);
      for (int64_t m0 = 0; m0 < shape.m; m0 += kBlockM) {
        const int64_t mb = Smaller(shape.m - m0, kBlockM);
        PackPanels<kTileM>(mb, kb, a + m0 * shape.a_m + k0 * shape.a_k, shape.a_m, shape.a_k, 1.0f, packed_a);
        int64_t j = 0;
        if (shape.m == 1 && direct_b && shape.c_n == 1) {
          j = WideRow(shape, whole, kb, packed_a, b_block, c + n0, accumulate);
        }
        for (; j < nb; j += kTileN) {
          const float* panel_b = j < whole ? b_block + j : packed_b + (j - whole) * kb;
          const int64_t b_step = j < whole ? shape.b_k : kTileN;
          for (int64_t i = 0; i < mb; i += kTileM) {
            ComputeTile(shape, Smaller(mb - i, kTileM), Smaller(nb - j, kTileN), kb, packed_a + i * kb, panel_b, b_step,
                        c + (m0 + i) * shape.c_m + (n0 + j) * shape.c_n, accumulate);
          }
        }
      }
    }
  }
}

}  // namespace

extern const GemmTable kGemm = {kTileM, kTileN, &ScratchFloats, &Run};

}  // namespace bowline::kernels::BOWLINE_ISA
