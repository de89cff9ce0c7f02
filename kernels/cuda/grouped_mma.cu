// grouped_matmul and grouped_outer of bf16 by matrix instructions, where rows of all matrices are multiples of 16
// bytes: tiles of 128 x 128, a warp 32 x 64 of it, which stream 64 elements of the sum at a time through shared memory,
// the next ones being read meanwhile.

#include "kernels/cuda/row_groups.h"
#include "kernels/cuda/tensor_core.h"

namespace {

using namespace bowline::device;

// c [m, n] = a b over k terms. a is [m, k], or [k, m] with kTransposedA; b is [k, n], or [n, k] with kTransposedB.
template <bool kTransposedA, bool kTransposedB, typename Result>
struct MmaTile {
  static constexpr int kSide = 128, kDepth = 64, kThreads = 256, kTileBytes = kSide * kDepth * 2;
  using ARows = SharedRows<kTransposedA ? kSide : kDepth>;
  using BRows = SharedRows<kTransposedB ? kDepth : kSide>;

  const Bf16 *a, *b;
  int64_t m, n, k, row, column;  // row and column are those of the tile's first element

  BOWLINE_DEVICE void Read(int64_t step, SharedAddress tiles) const {
    const int64_t k0 = step * kDepth;
    const ARows a_rows = {tiles};
    const BRows b_rows = {tiles + kTileBytes};
    if constexpr (kTransposedA) {
      a_rows.template ReadPart<kDepth, kThreads>(a, m, k0, k, row, m);
    } else {
      a_rows.template ReadPart<kSide, kThreads>(a, k, row, m, k0, k);
    }
    if constexpr (kTransposedB) {
      b_rows.template ReadPart<kSide, kThreads>(b, k, column, n, k0, k);
    } else {
      b_rows.template ReadPart<kDepth, kThreads>(b, n, k0, k, column, n);
    }
    CommitCopies();
  }

  // Shared memory: twice a tile of a and one of b.
  BOWLINE_DEVICE void Multiply(Result* c) const {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 64;
    const SharedAddress tiles = SharedBase();
    float sums[2][8][4] = {};
    const int64_t steps = CeilDiv(k, kDepth);
    if (steps > 0) Read(0, tiles);
    for (int64_t step = 0; step < steps; ++step) {
      const int buffer = static_cast<int>(step % 2);
      WaitForCopies();
      Barrier();  // the tiles are there, and no thread reads those before, whose place the next ones take
      if (step + 1 < steps) Read(step + 1, tiles + (1 - buffer) * 2 * kTileBytes);
      const ARows a_rows = {tiles + buffer * 2 * kTileBytes};
      const BRows b_rows = {tiles + (buffer * 2 + 1) * kTileBytes};
#pragma unroll
      for (int part = 0; part < kDepth / 16; ++part) {
        uint32_t own_a[2][4];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if constexpr (kTransposedA) {
            a_rows.LoadTransposedA(own_a[i], part * 16, warp_row / 16 + i, lane);
          } else {
            a_rows.LoadA(own_a[i], warp_row + i * 16, part, lane);
          }
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          uint32_t own_b[4];
          if constexpr (kTransposedB) {
            b_rows.LoadB(own_b, warp_column + j * 16, part, lane);
          } else {
            b_rows.LoadTransposedB(own_b, part * 16, warp_column / 16 + j, lane);
          }
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            MultiplyTile(sums[i][2 * j], own_a[i], own_b[0], own_b[1]);
            MultiplyTile(sums[i][2 * j + 1], own_a[i], own_b[2], own_b[3]);
          }
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int64_t at_row = row + warp_row + i * 16 + half * 8 + lane / 4;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const int64_t at_column = column + warp_column + j * 8 + lane % 4 * 2;
          const Vector<Result, 2> pair = {Narrow<Result>(sums[i][j][half * 2]),
                                          Narrow<Result>(sums[i][j][half * 2 + 1])};
          if (at_row < m && at_column < n) StoreAligned(c + at_row * n + at_column, pair);
        }
      }
    }
  }
};

// Blocks of the grid are row blocks times strips of columns.
template <bool kTransposed, typename Result>
BOWLINE_DEVICE void GroupedMatmulMma(const Bf16* rows, const Bf16* matrices, const int32_t* offsets, Result* out,
                                     int64_t row_count, int64_t k, int64_t n, int64_t groups, int32_t leaves_rows_out) {
  using Tile = MmaTile<false, kTransposed, Result>;
  const int64_t strips = CeilDiv(n, Tile::kSide), column = blockIdx.x % strips * Tile::kSide;
  const RowBlock block =
      FindRowBlock(offsets, groups, row_count, Tile::kSide, blockIdx.x / strips, leaves_rows_out != 0);
  if (block.begin == block.end) return;
  const bool none = block.group == RowBlock::kNone;
  const Tile tile = {rows + block.begin * k,
                     matrices + (none ? 0 : block.group) * k * n,
                     block.end - block.begin,
                     n,
                     none ? 0 : k,
                     block.first - block.begin,
                     column};
  tile.Multiply(out + block.begin * n);
}

// Blocks of the grid are matrices of the result, blocks of their rows and strips of their columns.
template <typename Result>
BOWLINE_DEVICE void GroupedOuterMma(const Bf16* lhs, const Bf16* rhs, const int32_t* offsets, Result* out, int64_t rows,
                                    int64_t m, int64_t n, int64_t groups) {
  using Tile = MmaTile<true, false, Result>;
  const int64_t strips = CeilDiv(n, Tile::kSide), blocks = CeilDiv(m, Tile::kSide);
  const int64_t column = blockIdx.x % strips * Tile::kSide, row = blockIdx.x / strips % blocks * Tile::kSide,
                matrix = blockIdx.x / strips / blocks;
  const RowRange own = RowsOf(offsets, groups, rows, matrix);
  const Tile tile = {lhs + own.begin * m, rhs + own.begin * n, m, n, own.end - own.begin, row, column};
  tile.Multiply(out + matrix * m * n);
}

}  // namespace

#define BOWLINE_GROUPED_MMA(suffix, Result)                                                                            \
  BOWLINE_DEVICE_FUNCTION(bowline_grouped_matmul_mma_##suffix, 256, const Bf16* rows, const Bf16* matrices,            \
                          const int32_t* offsets, Result* out, int64_t row_count, int64_t k, int64_t n,                \
                          int64_t groups, int32_t leaves_rows_out) {                                                   \
    GroupedMatmulMma<false>(rows, matrices, offsets, out, row_count, k, n, groups, leaves_rows_out);                   \
  }                                                                                                                    \
  BOWLINE_DEVICE_FUNCTION(bowline_grouped_matmul_transposed_mma_##suffix, 256, const Bf16* rows, const Bf16* matrices, \
                          const int32_t* offsets, Result* out, int64_t row_count, int64_t k, int64_t n,                \
                          int64_t groups, int32_t leaves_rows_out) {                                                   \
    GroupedMatmulMma<true>(rows, matrices, offsets, out, row_count, k, n, groups, leaves_rows_out);                    \
  }                                                                                                                    \
  BOWLINE_DEVICE_FUNCTION(bowline_grouped_outer_mma_##suffix, 256, const Bf16* lhs, const Bf16* rhs,                   \
                          const int32_t* offsets, Result* out, int64_t rows, int64_t m, int64_t n, int64_t groups) {   \
    GroupedOuterMma(lhs, rhs, offsets, out, rows, m, n, groups);                                                       \
  }
BOWLINE_GROUPED_MMA(f32, float)
BOWLINE_GROUPED_MMA(bf16, Bf16)
#undef BOWLINE_GROUPED_MMA
