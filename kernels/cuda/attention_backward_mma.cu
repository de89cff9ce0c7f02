// attention_backward of bf16 by matrix instructions. One function computes dq, with rows that are queries and columns
// that are keys, another one dk and dv, where it is the other way round: a warp has 16 rows, whose sums stay in
// registers while blocks of columns stream past in shared memory, the next one being read meanwhile. Where the device
// has warpgroups, four warps multiply their 64 rows together, and exponentiate while products still run. Probabilities
// are computed twice, so that nothing is summed by several blocks.

#include "kernels/cuda/attention_geometry.h"
#include "kernels/cuda/warpgroup.h"

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
  static constexpr int kTogether = kWarpgroups ? 64 : 16;  // rows that are multiplied together
  using Rows = SharedPanels<kDim, kRows>;
  using Columns = SharedPanels<kDim, kColumns>;
  // Bytes of shared memory for lse and delta of a block of columns, which only columns that are queries have.
  static constexpr int kStatisticsBytes = kOfKeys ? 2 * kColumns * 4 : 0;
  using Tile = float[kColumns / 8][4];
  using Sums = float[kDim / 8][4];

  const NarrowSize& s;
  int warp, lane;
  int32_t row;             // the warp's first
  Sums with_first;         // ds times the first operand: dk or dq
  Sums with_second;        // p times the second one: dv; not used where rows are queries
  float lse[2], delta[2];  // set if rows are queries; lse in units of log2(e)

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

  // Reads lse and delta of the thread's rows where rows are queries. Rows beyond the last query get p = 0.
  BOWLINE_DEVICE void ReadStatistics(const float* head_lse, const float* head_delta) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int32_t query = row + half * 8 + lane / 4;
      lse[half] = query < s.queries ? head_lse[query] * kLog2E : kInfinity;
      delta[half] = query < s.queries ? head_delta[query] : 0.0f;
    }
  }

  // to = (rows of a) (columns of b)^T
  BOWLINE_DEVICE void Products(const Rows& a, const Columns& b, Tile& to) const {
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
  BOWLINE_DEVICE void AddWeighted(const Tile& weights, const Columns& b, Sums& sums) const {
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

  // to = p from products, of columns from `column` on.
  BOWLINE_DEVICE void Exponentiate(Tile& p, SharedAddress statistics, int32_t column, int32_t begin, int32_t last,
                                   float scale) const {
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
      float below[2];
      if constexpr (kOfKeys) LoadPair(below, statistics + n * 32);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        p[n][i] = Exp2(MulAdd(p[n][i], scale, kOfKeys ? below[i % 2] * -kLog2E : -lse[i / 2]));
    }
    if (column < ColumnsOf(s, last, last + 1).begin || column + kColumns > ColumnsOf(s, begin, begin + 1).end) {
      Hide(p, column);
    }
  }

  // ds = p (dp - delta)
  BOWLINE_DEVICE void Differentiate(const Tile& p, SharedAddress statistics, Tile& ds) const {
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
      float mean[2];
      if constexpr (kOfKeys) LoadPair(mean, statistics + (kColumns * 4 + n * 32));
#pragma unroll
      for (int i = 0; i < 4; ++i) ds[n][i] = p[n][i] * (ds[n][i] - (kOfKeys ? mean[i % 2] : delta[i / 2]));
    }
  }

  // The same by the warpgroup.
  BOWLINE_DEVICE void StartProductsOf(const Rows& a, const Columns& b, Tile& to) const {
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      MultiplyTogether<false>(to, a.Describe(warp / 4 * 64, step), b.Describe(0, step), step > 0);
    }
    CommitProducts();
  }
  BOWLINE_DEVICE void StartWeighted(const uint32_t (&weights)[kColumns / 16][4], const Columns& b, Sums& sums) const {
#pragma unroll
    for (int step = 0; step < kColumns / 16; ++step) {
      MultiplyTogether<true>(sums, weights[step], b.DescribeTransposed(step * 16), true);
    }
    CommitProducts();
  }
  BOWLINE_DEVICE void Pack(uint32_t (&to)[kColumns / 16][4], const Tile& from) const {
#pragma unroll
    for (int step = 0; step < kColumns / 16; ++step) PackA(to[step], from[2 * step], from[2 * step + 1]);
  }

  BOWLINE_DEVICE void AddColumns(const Rows& first_rows, const Rows& second_rows, const Columns& first_columns,
                                 const Columns& second_columns, SharedAddress statistics, int32_t column, float scale) {
    // Decided for all rows that are multiplied together.
    const int32_t begin = row - warp * 16 % kTogether, last = Smaller(begin + kTogether, RowCount(s)) - 1;
    if (begin > last) return;
    const NarrowSize::Range any = ColumnsOf(s, begin, last + 1);
    if (column + kColumns <= any.begin || column >= any.end) return;
    Tile p, ds;
    if constexpr (kWarpgroups) {
      StartProducts();
      StartProductsOf(first_rows, first_columns, p);
      StartProductsOf(second_rows, second_columns, ds);
      WaitForProducts<1>();
      Settle(p);
      Exponentiate(p, statistics, column, begin, last, scale);
      if constexpr (kOfKeys) {
        uint32_t weights[kColumns / 16][4];
        Pack(weights, p);
        StartProducts();
        StartWeighted(weights, second_columns, with_second);
        WaitForProducts<1>();
      } else {
        WaitForProducts<0>();
      }
      Settle(ds);
      Differentiate(p, statistics, ds);
      uint32_t weights[kColumns / 16][4];
      Pack(weights, ds);
      StartProducts();
      StartWeighted(weights, first_columns, with_first);
      WaitForProducts<0>();
      Settle(with_first);
      if constexpr (kOfKeys) Settle(with_second);
    } else {
      Products(first_rows, first_columns, p);
      Exponentiate(p, statistics, column, begin, last, scale);
      Products(second_rows, second_columns, ds);
      if constexpr (kOfKeys) AddWeighted(p, second_columns, with_second);
      Differentiate(p, statistics, ds);
      AddWeighted(ds, first_columns, with_first);
    }
  }

  // Shared memory: both operands' rows, then twice a block of both operands' columns, then twice their statistics. The
  // first operand is k where rows are keys, else q, the second one v or dout; of columns the others.
  BOWLINE_DEVICE static void Run(const BackwardInputs& x, Bf16* of_first, Bf16* of_second, const NarrowSize& s) {
    const int32_t row_count = RowCount(s), column_count = ColumnCount(s),
                  group = static_cast<int32_t>(s.heads) / static_cast<int32_t>(s.kv_heads);
    const int32_t row_heads = static_cast<int32_t>(kOfKeys ? s.kv_heads : s.heads),
                  blocks = (row_count + kRows - 1) / kRows;
    const BlockOrder order = OrderOfBlock(blocks, int64_t{4} * column_count * kDim * (kOfKeys ? group : 1));
    const int32_t index = order.head, place = order.place;
    const int32_t batch = index / row_heads, row_head = index % row_heads;
    // Early keys are seen by more queries under a causal mask, and late queries see more keys: they begin first.
    const int32_t first = (kOfKeys ? place : blocks - 1 - place) * kRows;
    const int32_t first_head = kOfKeys ? row_head * group : row_head;  // the first query head
    const int64_t own_kv = s.KeyOffset(batch, kOfKeys ? row_head : row_head / group);
    const int64_t row_stride = kOfKeys ? s.KeyStride() : s.QueryStride(),
                  column_stride = kOfKeys ? s.QueryStride() : s.KeyStride();
    const int64_t own = kOfKeys ? own_kv : s.QueryOffset(batch, row_head);

    const Rows first_rows = {SharedBase()}, second_rows = {first_rows.at + Rows::kBytes};
    const auto first_columns = [&](int buffer) {
      return Columns{second_rows.at + (Rows::kBytes + buffer * (2 * Columns::kBytes))};
    };
    const auto second_columns = [&](int buffer) { return Columns{first_columns(buffer).at + Columns::kBytes}; };
    const auto statistics = [&](int buffer) {
      return second_rows.at + (Rows::kBytes + 4 * Columns::kBytes + buffer * kStatisticsBytes);
    };
    first_rows.template Read<kThreads>((kOfKeys ? x.k : x.q) + own, row_stride, first, row_count);
    second_rows.template Read<kThreads>((kOfKeys ? x.v : x.dout) + own, row_stride, first, row_count);
    CommitCopies();

    // All columns of the group's first head, then of the next one.
    const NarrowSize::Range seen = ColumnsOf(s, first, Smaller(first + kRows, row_count));
    const int32_t of_head = (Larger(0, seen.end - seen.begin) + kColumns - 1) / kColumns;
    const int32_t steps = of_head * (kOfKeys ? group : 1);
    int32_t next_head = first_head, next_column = seen.begin;  // the next ones to be read
    const auto read = [&](int buffer) {
      const int32_t head = next_head, column = next_column;
      next_column += kColumns;
      if (kOfKeys && next_column >= seen.end) next_column = seen.begin, ++next_head;
      const int64_t offset = kOfKeys ? s.QueryOffset(batch, head) : own_kv;
      first_columns(buffer).template Read<kThreads>((kOfKeys ? x.q : x.k) + offset, column_stride, column,
                                                    column_count);
      second_columns(buffer).template Read<kThreads>((kOfKeys ? x.dout : x.v) + offset, column_stride, column,
                                                     column_count);
      if constexpr (kOfKeys) {
        static_assert(2 * kColumns <= kThreads);
        const int i = static_cast<int>(threadIdx.x);
        if (i < 2 * kColumns) {
          const int32_t query = column + i % kColumns;
          const bool inside = query < s.queries;
          const float* from = i < kColumns ? x.lse : x.delta;
          CopyAsync4(statistics(buffer) + i * 4,
                     from + (int64_t{batch} * s.heads + head) * s.queries + (inside ? query : 0), inside);
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
    int32_t column = seen.begin;
    for (int32_t step = 0; step < steps; ++step) {
      WaitForCopies();
      if constexpr (kWarpgroups) ShowToProducts();
      Barrier();  // the block is there, and no thread reads the one before, whose place the next one takes
      const int buffer = step % 2;
      if (step + 1 < steps) read(buffer ^ 1);
      block.AddColumns(first_rows, second_rows, first_columns(buffer), second_columns(buffer),
                       statistics(buffer) + block.lane % 4 * 8, column, scale);
      column += kColumns;
      if (kOfKeys && column >= seen.end) column = seen.begin;
    }
    if (steps == 0) WaitForCopies();
    // If warps multiply their rows together, other warps may still read the rows that are written over.
    if (kWarpgroups || steps == 0) Barrier();
    first_rows.Write(block.with_first, s.scale, s.scale, block.warp * 16, block.lane, of_first + own, row_stride,
                     block.row, row_count);
    if constexpr (kOfKeys) {
      second_rows.Write(block.with_second, 1.0f, 1.0f, block.warp * 16, block.lane, of_second + own, row_stride,
                        block.row, row_count);
    }
  }
};

// delta[b, h, i] = dout[b, i, h] . out[b, i, h] of heads whose rows are multiples of 16 bytes; kLanes lanes have one.
template <int kDim>
BOWLINE_DEVICE void VectorDelta(const Bf16* out, const Bf16* dout, float* delta, int64_t rows, int64_t queries,
                                int64_t heads) {
  constexpr int kLanes = kDim <= 64 ? 8 : 16;
  const int64_t row = GlobalThread() / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  float sum = 0.0f;
  if (row < rows && lane < kDim / 8) {
    const auto a = LoadAligned<Vector<uint32_t, 4> >(out + row * kDim + lane * 8);
    const auto b = LoadAligned<Vector<uint32_t, 4> >(dout + row * kDim + lane * 8);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sum = MulAdd(FloatOf(a.at[i] << 16), FloatOf(b.at[i] << 16), sum);
      sum = MulAdd(FloatOf(a.at[i] & 0xffff0000u), FloatOf(b.at[i] & 0xffff0000u), sum);
    }
  }
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask /= 2) sum += ShuffleXor(sum, mask);
  if (row >= rows || lane != 0) return;
  if (rows <= int64_t{0x7fffffff}) {
    const uint32_t narrow = static_cast<uint32_t>(row), of_heads = narrow / static_cast<uint32_t>(heads),
                   head = narrow - of_heads * static_cast<uint32_t>(heads),
                   batch = of_heads / static_cast<uint32_t>(queries),
                   query = of_heads - batch * static_cast<uint32_t>(queries);
    delta[(int64_t{batch} * heads + head) * queries + query] = sum;
  } else {
    const int64_t head = row % heads, query = row / heads % queries, batch = row / heads / queries;
    delta[(batch * heads + head) * queries + query] = sum;
  }
}

}  // namespace

#define BOWLINE_ATTENTION_BACKWARD(dim, queries_warps, queries_columns, queries_blocks, keys_warps, keys_columns,  \
                                   keys_blocks)                                                                    \
  BOWLINE_DEVICE_FUNCTION(bowline_attention_delta_mma_##dim, 256, const Bf16* out, const Bf16* dout, float* delta, \
                          int64_t rows, int64_t queries, int64_t heads) {                                          \
    VectorDelta<dim>(out, dout, delta, rows, queries, heads);                                                      \
  }                                                                                                                \
  BOWLINE_DEVICE_FUNCTION_OF(bowline_attention_backward_queries_mma_##dim, 32 * queries_warps,                     \
                             kWarpgroups ? queries_blocks : 1, const Bf16* q, const Bf16* k, const Bf16* v,        \
                             const float* lse, const Bf16* dout, const float* delta, Bf16* dq,                     \
                             BOWLINE_ATTENTION_PARAMETERS) {                                                       \
    MmaBackward<false, dim, queries_warps, queries_columns>::Run({q, k, v, lse, dout, delta}, dq, nullptr,         \
                                                                 BOWLINE_ATTENTION_SIZE(int32_t));                 \
  }                                                                                                                \
  BOWLINE_DEVICE_FUNCTION_OF(bowline_attention_backward_keys_mma_##dim, 32 * keys_warps,                           \
                             kWarpgroups ? keys_blocks : 1, const Bf16* q, const Bf16* k, const Bf16* v,           \
                             const float* lse, const Bf16* dout, const float* delta, Bf16* dk, Bf16* dv,           \
                             BOWLINE_ATTENTION_PARAMETERS) {                                                       \
    MmaBackward<true, dim, keys_warps, keys_columns>::Run({q, k, v, lse, dout, delta}, dk, dv,                     \
                                                          BOWLINE_ATTENTION_SIZE(int32_t));                        \
  }
BOWLINE_ATTENTION_BACKWARD(64, 4, 64, 4, 4, 64, 3)
BOWLINE_ATTENTION_BACKWARD(96, 4, 64, 2, 4, 32, 2)
BOWLINE_ATTENTION_BACKWARD(128, 4, 64, 2, 4, 64, 2)
#undef BOWLINE_ATTENTION_BACKWARD
