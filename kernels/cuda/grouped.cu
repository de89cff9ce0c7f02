// grouped_matmul and grouped_outer on tiles of 64 x 64 in f32, a thread 4 x 4 of it; bf16 is widened. Of
// any shape; see grouped_mma.cu.

#include "kernels/cuda/row_groups.h"

namespace {

using namespace bowline::device;

constexpr int kTile = 64, kDepth = 16, kThreads = 256, kPadded = kTile + 4;

// A matrix in memory: element (i, j) at i * row + j * column.
template <typename T>
struct Matrix {
  const T* at;
  int64_t row, column;
};

// Reads [first, first + kTile) x [k0, k0 + kDepth) of `from` into shared memory as [kDepth][kPadded], zeros beyond
// `count` and `depth`. Neighbouring threads read neighbouring elements.
template <typename T>
BOWLINE_DEVICE void ReadTile(const Matrix<T>& from, int64_t first, int64_t count, int64_t k0, int64_t depth,
                             float* tile) {
#pragma unroll
  for (int n = 0; n < kTile * kDepth / kThreads; ++n) {
    const int unit = static_cast<int>(threadIdx.x) + n * kThreads;
    const bool along_k = from.column == 1;
    const int i = along_k ? unit / kDepth : unit % kTile, k = along_k ? unit % kDepth : unit / kTile;
    const bool inside = first + i < count && k0 + k < depth;
    tile[k * kPadded + i] = inside ? Widen(from.at[(first + i) * from.row + (k0 + k) * from.column]) : 0.0f;
  }
}

// c = a b on the tile at (row, column) of a result of m x n, dense rows of n; `b` is seen as [n, k].
template <typename Operand, typename Result>
BOWLINE_DEVICE void MultiplyBlock(const Matrix<Operand>& a, const Matrix<Operand>& b, int64_t m, int64_t n, int64_t k,
                                  int64_t row, int64_t column, Result* c) {
  float* a_tile = reinterpret_cast<float*>(SharedMemory());
  float* b_tile = a_tile + kDepth * kPadded;
  const int ty = static_cast<int>(threadIdx.x) / 16, tx = static_cast<int>(threadIdx.x) % 16;
  float sums[4][4] = {};
  for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
    ReadTile(a, row, m, k0, k, a_tile);
    ReadTile(b, column, n, k0, k, b_tile);
    Barrier();
#pragma unroll
    for (int step = 0; step < kDepth; ++step) {
      const auto x = LoadAligned<Vector<float, 4>>(a_tile + step * kPadded + ty * 4);
      const auto y = LoadAligned<Vector<float, 4>>(b_tile + step * kPadded + tx * 4);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] = MulAdd(x.at[i], y.at[j], sums[i][j]);
      }
    }
    Barrier();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t at_row = row + ty * 4 + i, at_column = column + tx * 4 + j;
      if (at_row < m && at_column < n) c[at_row * n + at_column] = Narrow<Result>(sums[i][j]);
    }
  }
}

// Blocks of the grid are row blocks times strips of columns.
template <typename Operand, typename Result>
BOWLINE_DEVICE void GroupedMatmul(const Operand* rows, const Operand* matrices, const int32_t* offsets, Result* out,
                                  int64_t row_count, int64_t k, int64_t n, int64_t groups, int32_t transposed,
                                  int32_t leaves_rows_out) {
  const int64_t strips = CeilDiv(n, kTile), column = blockIdx.x % strips * kTile;
  const RowBlock block = FindRowBlock(offsets, groups, row_count, kTile, blockIdx.x / strips, leaves_rows_out != 0);
  if (block.begin == block.end) return;
  const bool none = block.group == RowBlock::kNone;
  const Matrix<Operand> a = {rows + block.begin * k, k, 1};
  const Operand* matrix = matrices + (none ? 0 : block.group) * k * n;
  const Matrix<Operand> b = transposed != 0 ? Matrix<Operand>{matrix, k, 1} : Matrix<Operand>{matrix, 1, n};
  MultiplyBlock(a, b, block.end - block.begin, n, none ? 0 : k, block.first - block.begin, column,
                out + block.begin * n);
}

// Blocks of the grid are matrices of the result, blocks of their rows and strips of their columns.
template <typename Operand, typename Result>
BOWLINE_DEVICE void GroupedOuter(const Operand* lhs, const Operand* rhs, const int32_t* offsets, Result* out,
                                 int64_t rows, int64_t m, int64_t n, int64_t groups) {
  const int64_t strips = CeilDiv(n, kTile), blocks = CeilDiv(m, kTile);
  const int64_t column = blockIdx.x % strips * kTile, row = blockIdx.x / strips % blocks * kTile,
                matrix = blockIdx.x / strips / blocks;
  const RowRange rows_of = RowsOf(offsets, groups, rows, matrix);
  const int64_t begin = rows_of.begin, end = rows_of.end;
  const Matrix<Operand> a = {lhs + begin * m, 1, m}, b = {rhs + begin * n, 1, n};
  MultiplyBlock(a, b, m, n, end - begin, row, column, out + matrix * m * n);
}

}  // namespace

#define BOWLINE_GROUPED(suffix, Operand, Result)                                                                     \
  BOWLINE_DEVICE_FUNCTION(bowline_grouped_matmul_##suffix, 256, const Operand* rows, const Operand* matrices,        \
                          const int32_t* offsets, Result* out, int64_t row_count, int64_t k, int64_t n,              \
                          int64_t groups, int32_t transposed, int32_t leaves_rows_out) {                             \
    GroupedMatmul(rows, matrices, offsets, out, row_count, k, n, groups, transposed, leaves_rows_out);               \
  }                                                                                                                  \
  BOWLINE_DEVICE_FUNCTION(bowline_grouped_outer_##suffix, 256, const Operand* lhs, const Operand* rhs,               \
                          const int32_t* offsets, Result* out, int64_t rows, int64_t m, int64_t n, int64_t groups) { \
    GroupedOuter(lhs, rhs, offsets, out, rows, m, n, groups);                                                        \
  }
BOWLINE_GROUPED(f32_f32, float, float)
BOWLINE_GROUPED(bf16_f32, Bf16, float)
BOWLINE_GROUPED(bf16_bf16, Bf16, Bf16)
#undef BOWLINE_GROUPED
