// attention_backward of bf16 by matrix instructions. One function computes dq, with rows that are queries and columns
// that are keys, another one dk and dv, where it is the other way round: a warp has 16 rows, whose sums stay in
// registers while blocks of columns stream past in shared memory, the next one being read meanwhile. Probabilities are
// computed twice, so that nothing is summed by several blocks.

#include "kernels/cuda/attention_geometry.h"
#include "kernels/cuda/tensor_core.h"

namespace {

using namespace bowline::device;

struct BackwardInputs {
  const Bf16 *q, *k, *v;
  const float* lse;
  const Bf16* dout;
  const float* delta;
};

template <bool kOfKeys, int kDim, int kWarps, int kColumns>
struct MmaBackward {
  static constexpr int kRows = 16 * kWarps, kThreads = 32 * kWarps;
  using Rows = SharedRows<kDim>;
  static constexpr int kRowsBytes = kRows * Rows::kRowBytes, kColumnsBytes = kColumns * Rows::kRowBytes;
  // Of a block of columns: both operands, then, where they are queries, lse and delta.
  static constexpr int kBlockBytes = 2 * kColumnsBytes + (kOfKeys ? 2 * kColumns * 4 : 0);
  using Tile = float[kColumns / 8][4];
  using Sums = float[kDim / 8][4];

  const NarrowSize& s;
  int warp, lane;
  int32_t row;             // the warp's first
  Sums with_first;         // ds times the first operand: dk or dq
  Sums with_second;        // p times the second one: dv; not used where rows are queries
  float lse[2], delta[2];  // of rows that are queries; lse in units of log2(e)

  BOWLINE_DEVICE MmaBackward(const NarrowSize& size, int32_t first)
      : s(size),
        warp(static_cast<int>(threadIdx.x) / 32),
        lane(static_cast<int>(threadIdx.x) % 32),
        row(first + warp * 16) {
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        with_first[n][i] = 0.0f;
        with_second[n][i] = 0.0f;
      }
    }
  }

  BOWLINE_DEVICE static int32_t RowCount(const NarrowSize& s) { return kOfKeys ? s.keys : s.queries; }
  BOWLINE_DEVICE static int32_t ColumnCount(const NarrowSize& s) { return kOfKeys ? s.queries : s.keys; }
  // The columns that rows [begin, end) have to do with; the bounds rise with the rows.
  BOWLINE_DEVICE static NarrowSize::Range ColumnsOf(const NarrowSize& s, int32_t begin, int32_t end) {
    return kOfKeys ? s.QueriesOf(begin, end) : s.KeysOf(begin, end);
  }

  // Of rows that are queries. Those beyond the last get p = 0.
  BOWLINE_DEVICE void ReadStatistics(const float* head_lse, const float* head_delta) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int32_t query = row + half * 8 + lane / 4;
      lse[half] = query < s.queries ? head_lse[query] * kLog2E : kInfinity;
      delta[half] = query < s.queries ? head_delta[query] : 0.0f;
    }
  }

  // to = (rows of a) (columns of b)^T
  BOWLINE_DEVICE void Products(const Rows& a, const Rows& b, Tile& to) const {
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) to[n][i] = 0.0f;
    }
#pragma unroll 2
    for (int step = 0; step < kDim / 16; ++step) {
      uint32_t rows[4];
      a.LoadA(rows, warp * 16, step, lane);
#pragma unroll
      for (int n = 0; n < kColumns / 16; ++n) {
        uint32_t columns[4];
        b.LoadB(columns, n * 16, step, lane);
        MultiplyTile(to[2 * n], rows, columns[0], columns[1]);
        MultiplyTile(to[2 * n + 1], rows, columns[2], columns[3]);
      }
    }
  }

  // sums += weights (columns of b), weights rounded.
  BOWLINE_DEVICE void AddWeighted(const Tile& weights, const Rows& b, Sums& sums) const {
#pragma unroll
    for (int step = 0; step < kColumns / 16; ++step) {
      const float (&left)[4] = weights[2 * step], (&right)[4] = weights[2 * step + 1];
      const uint32_t a[4] = {PackBf16(left[0], left[1]), PackBf16(left[2], left[3]), PackBf16(right[0], right[1]),
                             PackBf16(right[2], right[3])};
#pragma unroll
      for (int n = 0; n < kDim / 16; ++n) {
        uint32_t columns[4];
        b.LoadTransposedB(columns, step * 16, n, lane);
        MultiplyTile(sums[2 * n], a, columns[0], columns[1]);
        MultiplyTile(sums[2 * n + 1], a, columns[2], columns[3]);
      }
    }
  }

  // p of columns that a row has nothing to do with becomes zero.
  BOWLINE_DEVICE void Hide(Tile& p, int32_t column) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int32_t own = Smaller(row + half * 8 + lane / 4, RowCount(s) - 1);
      const NarrowSize::Range seen = ColumnsOf(s, own, own + 1);
      const int begin = seen.begin - column, end = seen.end - column;
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int j = n * 8 + lane % 4 * 2 + i;
          if (j < begin || j >= end) p[n][half * 2 + i] = 0.0f;
        }
      }
    }
  }

  BOWLINE_DEVICE void AddColumns(const Rows& first_rows, const Rows& second_rows, SharedAddress block, int32_t column,
                                 float scale) {
    const int32_t last = Smaller(row + 16, RowCount(s)) - 1;
    if (row > last) return;
    const NarrowSize::Range any = ColumnsOf(s, row, last + 1);
    if (column + kColumns <= any.begin || column >= any.end) return;
    const Rows first_columns = {block}, second_columns = {block + kColumnsBytes};
    const SharedAddress statistics = block + (2 * kColumnsBytes + lane % 4 * 8);
    Tile p, ds;
    Products(first_rows, first_columns, p);
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float below = kOfKeys ? LoadFloat(statistics + (n * 32 + i % 2 * 4)) * kLog2E : lse[i / 2];
        p[n][i] = Exp2(MulAdd(p[n][i], scale, -below));
      }
    }
    if (column < ColumnsOf(s, last, last + 1).begin || column + kColumns > ColumnsOf(s, row, row + 1).end) {
      Hide(p, column);
    }
    Products(second_rows, second_columns, ds);
    if constexpr (kOfKeys) AddWeighted(p, second_columns, with_second);
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float mean = kOfKeys ? LoadFloat(statistics + (kColumns * 4 + n * 32 + i % 2 * 4)) : delta[i / 2];
        ds[n][i] = p[n][i] * (ds[n][i] - mean);
      }
    }
    AddWeighted(ds, first_columns, with_first);
  }

  // Shared memory: both operands' rows, then twice a block of columns. The first operand is k where rows are keys, else
  // q, the second one v or dout; of columns the others.
  BOWLINE_DEVICE static void Run(const BackwardInputs& x, Bf16* of_first, Bf16* of_second, const NarrowSize& s) {
    const int32_t row_count = RowCount(s), column_count = ColumnCount(s),
                  group = static_cast<int32_t>(s.heads / s.kv_heads);
    const int32_t row_heads = static_cast<int32_t>(kOfKeys ? s.kv_heads : s.heads),
                  blocks = (row_count + kRows - 1) / kRows, index = static_cast<int32_t>(blockIdx.x) / blocks,
                  place = static_cast<int32_t>(blockIdx.x) % blocks, batch = index / row_heads,
                  row_head = index % row_heads;
    // Early keys are seen by more queries under a causal mask, and late queries see more keys: they begin first.
    const int32_t first = (kOfKeys ? place : blocks - 1 - place) * kRows;
    const int32_t first_head = kOfKeys ? row_head * group : row_head;  // of queries
    const int64_t own_kv = s.KeyOffset(batch, kOfKeys ? row_head : row_head / group);
    const int64_t row_stride = kOfKeys ? s.KeyStride() : s.QueryStride(),
                  column_stride = kOfKeys ? s.QueryStride() : s.KeyStride();
    const int64_t own = kOfKeys ? own_kv : s.QueryOffset(batch, row_head);

    const Rows first_rows = {SharedBase()}, second_rows = {SharedBase() + kRowsBytes};
    const SharedAddress tiles = SharedBase() + 2 * kRowsBytes;
    first_rows.template Read<kRows, kThreads>((kOfKeys ? x.k : x.q) + own, row_stride, first, row_count);
    second_rows.template Read<kRows, kThreads>((kOfKeys ? x.v : x.dout) + own, row_stride, first, row_count);
    CommitCopies();

    // All columns of the group's first head, then of the next one.
    const NarrowSize::Range seen = ColumnsOf(s, first, Smaller(first + kRows, row_count));
    const int32_t of_head = (Larger(0, seen.end - seen.begin) + kColumns - 1) / kColumns;
    const int32_t steps = of_head * (kOfKeys ? group : 1);
    const auto column_of = [&](int32_t step) { return seen.begin + step % of_head * kColumns; };
    const auto read = [&](int32_t step) {
      const int32_t head = first_head + step / of_head, column = column_of(step);
      const SharedAddress block = tiles + step % 2 * kBlockBytes;
      const Rows first_columns = {block}, second_columns = {block + kColumnsBytes};
      const int64_t offset = kOfKeys ? s.QueryOffset(batch, head) : own_kv;
      first_columns.template Read<kColumns, kThreads>((kOfKeys ? x.q : x.k) + offset, column_stride, column,
                                                      column_count);
      second_columns.template Read<kColumns, kThreads>((kOfKeys ? x.dout : x.v) + offset, column_stride, column,
                                                       column_count);
      if constexpr (kOfKeys) {
        static_assert(2 * kColumns <= kThreads);
        const int i = static_cast<int>(threadIdx.x);
        if (i < 2 * kColumns) {
          const int32_t query = column + i % kColumns;
          const bool inside = query < s.queries;
          const float* statistics = i < kColumns ? x.lse : x.delta;
          CopyAsync4(block + 2 * kColumnsBytes + i * 4,
                     statistics + (int64_t{batch} * s.heads + head) * s.queries + (inside ? query : 0), inside);
        }
      }
      CommitCopies();
    };
    MmaBackward block(s, first);
    if constexpr (!kOfKeys) {
      block.ReadStatistics(x.lse + int64_t{index} * s.queries, x.delta + int64_t{index} * s.queries);
    }
    const float scale = s.scale * kLog2E;
    if (steps > 0) read(0);
    for (int32_t step = 0; step < steps; ++step) {
      WaitForCopies();
      Barrier();  // the block is there, and nobody reads the one before, whose place the next one takes
      if (step + 1 < steps) read(step + 1);
      block.AddColumns(first_rows, second_rows, tiles + step % 2 * kBlockBytes, column_of(step), scale);
    }
    if (steps == 0) {
      WaitForCopies();
      Barrier();
    }
    first_rows.Write(block.with_first, s.scale, s.scale, block.warp * 16, block.lane, of_first + own, row_stride,
                     block.row, row_count);
    if constexpr (kOfKeys) {
      second_rows.Write(block.with_second, 1.0f, 1.0f, block.warp * 16, block.lane, of_second + own, row_stride,
                        block.row, row_count);
    }
  }
};

}  // namespace

#define BOWLINE_ATTENTION_BACKWARD(dim, queries_warps, queries_columns, keys_warps, keys_columns)                    \
  BOWLINE_DEVICE_FUNCTION(bowline_attention_backward_queries_mma_##dim, 32 * queries_warps, const Bf16* q,           \
                          const Bf16* k, const Bf16* v, const float* lse, const Bf16* dout, const float* delta,      \
                          Bf16* dq, BOWLINE_ATTENTION_PARAMETERS) {                                                  \
    MmaBackward<false, dim, queries_warps, queries_columns>::Run({q, k, v, lse, dout, delta}, dq, nullptr,           \
                                                                 BOWLINE_ATTENTION_SIZE(int32_t));                   \
  }                                                                                                                  \
  BOWLINE_DEVICE_FUNCTION(bowline_attention_backward_keys_mma_##dim, 32 * keys_warps, const Bf16* q, const Bf16* k,  \
                          const Bf16* v, const float* lse, const Bf16* dout, const float* delta, Bf16* dk, Bf16* dv, \
                          BOWLINE_ATTENTION_PARAMETERS) {                                                            \
    MmaBackward<true, dim, keys_warps, keys_columns>::Run({q, k, v, lse, dout, delta}, dk, dv,                       \
                                                          BOWLINE_ATTENTION_SIZE(int32_t));                          \
  }
BOWLINE_ATTENTION_BACKWARD(64, 8, 64, 8, 64)
BOWLINE_ATTENTION_BACKWARD(96, 8, 32, 8, 32)
BOWLINE_ATTENTION_BACKWARD(128, 8, 32, 8, 32)
#undef BOWLINE_ATTENTION_BACKWARD
