// gather_rows and scatter_add_rows. Blocks have threads along a row, x, and along rows, y.

#include "kernels/cuda/device.h"

namespace {

using namespace bowline::device;

// The row that an id names, of those up to `last`: one out of range counts as the nearest.
BOWLINE_DEVICE int32_t RowOf(const int32_t* ids, int64_t token, int32_t last) { return Clamped(ids[token], 0, last); }

// Of `rows` rows of tokens the last element of `count` says how many there are; null: all.
struct Valid {
  const int32_t* count;
  int64_t elements, rows;

  BOWLINE_DEVICE int64_t Tokens(int64_t tokens) const {
    if (count == nullptr) return tokens;
    return Clamped(int64_t{count[elements - 1]}, int64_t{0}, rows) * (tokens / rows);
  }
};

template <typename Unit>
BOWLINE_DEVICE void GatherRows(const Unit* table, const int32_t* ids, Unit* out, int64_t tokens, int64_t units,
                               int32_t last) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t token = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; token < tokens; token += step) {
    const Unit* from = table + int64_t{RowOf(ids, token, last)} * units;
    Unit* to = out + token * units;
    for (int64_t i = threadIdx.x; i < units; i += blockDim.x) StoreAligned(to + i, LoadAligned<Unit>(from + i));
  }
}

// The sums of a row's columns are of its tokens in their order, from zero on. `kVector` columns at once, which divides
// the number of columns.
template <typename Update, typename Result, int kVector>
BOWLINE_DEVICE void SumRows(const Update* updates, const int32_t* counts, const int32_t* starts, const int32_t* ordered,
                            Result* out, int64_t rows, int64_t columns) {
  constexpr int kParts = sizeof(Result) * kVector > 16 ? 2 : 1;  // stores of at most 16 bytes each
  using Part = Vector<Result, kVector / kParts>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; row < rows; row += step) {
    const int32_t count = counts[row];
    const int32_t* tokens = ordered + (count > 0 ? starts[row] : 0);
    const int64_t from = static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
    for (int64_t column = from * kVector; column < columns; column += int64_t{kVector} * blockDim.x * gridDim.y) {
      float sums[kVector] = {};
#pragma unroll 4
      for (int32_t i = 0; i < count; ++i) {
        const auto update = LoadAligned<Vector<Update, kVector>>(updates + tokens[i] * columns + column);
#pragma unroll
        for (int e = 0; e < kVector; ++e) sums[e] += Widen(update.at[e]);
      }
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        Part stored;
#pragma unroll
        for (int e = 0; e < kVector / kParts; ++e) stored.at[e] = Narrow<Result>(sums[part * kVector / kParts + e]);
        StoreAligned(out + row * columns + column + part * kVector / kParts, stored);
      }
    }
  }
}

using Unit16 = Vector<uint32_t, 4>;

}  // namespace

BOWLINE_DEVICE_FUNCTION(bowline_gather_rows_16, 256, const Unit16* table, const int32_t* ids, Unit16* out,
                        int64_t tokens, int64_t units, int32_t last, const int32_t* valid, int64_t valid_elements,
                        int64_t valid_rows) {
  GatherRows(table, ids, out, Valid{valid, valid_elements, valid_rows}.Tokens(tokens), units, last);
}
BOWLINE_DEVICE_FUNCTION(bowline_gather_rows_4, 256, const uint32_t* table, const int32_t* ids, uint32_t* out,
                        int64_t tokens, int64_t units, int32_t last, const int32_t* valid, int64_t valid_elements,
                        int64_t valid_rows) {
  GatherRows(table, ids, out, Valid{valid, valid_elements, valid_rows}.Tokens(tokens), units, last);
}
BOWLINE_DEVICE_FUNCTION(bowline_gather_rows_2, 256, const uint16_t* table, const int32_t* ids, uint16_t* out,
                        int64_t tokens, int64_t units, int32_t last, const int32_t* valid, int64_t valid_elements,
                        int64_t valid_rows) {
  GatherRows(table, ids, out, Valid{valid, valid_elements, valid_rows}.Tokens(tokens), units, last);
}

// The tokens of each row are brought into order by counting, in integers: which segment a row gets and where in it a
// token first lies depends on the order of threads, the order in the end and the sums do not.

// counts [rows] are zero before. arrivals[n]: how many tokens of the same row came before.
BOWLINE_DEVICE_FUNCTION(bowline_scatter_count, 256, const int32_t* ids, int32_t* counts, int32_t* arrivals,
                        int64_t tokens, int32_t last, const int32_t* valid, int64_t valid_elements,
                        int64_t valid_rows) {
  tokens = Valid{valid, valid_elements, valid_rows}.Tokens(tokens);
  const int64_t token = GlobalThread();
  if (token < tokens) arrivals[token] = AtomicAdd(&counts[RowOf(ids, token, last)], 1);
}
// Gives each row that has tokens a segment; `total` is zero before.
BOWLINE_DEVICE_FUNCTION(bowline_scatter_place, 256, const int32_t* ids, const int32_t* counts, const int32_t* arrivals,
                        int32_t* starts, int32_t* total, int64_t tokens, int32_t last, const int32_t* valid,
                        int64_t valid_elements, int64_t valid_rows) {
  tokens = Valid{valid, valid_elements, valid_rows}.Tokens(tokens);
  const int64_t token = GlobalThread();
  if (token >= tokens || arrivals[token] != 0) return;
  const int32_t row = RowOf(ids, token, last);
  starts[row] = AtomicAdd(total, counts[row]);
}
BOWLINE_DEVICE_FUNCTION(bowline_scatter_collect, 256, const int32_t* ids, const int32_t* starts,
                        const int32_t* arrivals, int32_t* collected, int64_t tokens, int32_t last, const int32_t* valid,
                        int64_t valid_elements, int64_t valid_rows) {
  tokens = Valid{valid, valid_elements, valid_rows}.Tokens(tokens);
  const int64_t token = GlobalThread();
  if (token < tokens) collected[starts[RowOf(ids, token, last)] + arrivals[token]] = static_cast<int32_t>(token);
}
// Each token's place among those of its row is how many are smaller.
BOWLINE_DEVICE_FUNCTION(bowline_scatter_order, 256, const int32_t* ids, const int32_t* counts, const int32_t* starts,
                        const int32_t* collected, int32_t* ordered, int64_t tokens, int32_t last, const int32_t* valid,
                        int64_t valid_elements, int64_t valid_rows) {
  tokens = Valid{valid, valid_elements, valid_rows}.Tokens(tokens);
  const int64_t token = GlobalThread();
  if (token >= tokens) return;
  const int32_t row = RowOf(ids, token, last), start = starts[row], count = counts[row];
  int32_t place = start;
  for (int32_t i = 0; i < count; ++i) place += collected[start + i] < token ? 1 : 0;
  ordered[place] = static_cast<int32_t>(token);
}

#define BOWLINE_SCATTER_SUM(name, Update, Result, vector)                                                 \
  BOWLINE_DEVICE_FUNCTION(name, 256, const Update* updates, const int32_t* counts, const int32_t* starts, \
                          const int32_t* ordered, Result* out, int64_t rows, int64_t columns) {           \
    SumRows<Update, Result, vector>(updates, counts, starts, ordered, out, rows, columns);                \
  }
BOWLINE_SCATTER_SUM(bowline_scatter_sum_f32_f32, float, float, 1)
BOWLINE_SCATTER_SUM(bowline_scatter_sum_f32_f32_16, float, float, 4)
BOWLINE_SCATTER_SUM(bowline_scatter_sum_bf16_f32, Bf16, float, 1)
BOWLINE_SCATTER_SUM(bowline_scatter_sum_bf16_f32_16, Bf16, float, 8)
BOWLINE_SCATTER_SUM(bowline_scatter_sum_bf16_bf16, Bf16, Bf16, 1)
BOWLINE_SCATTER_SUM(bowline_scatter_sum_bf16_bf16_16, Bf16, Bf16, 8)
#undef BOWLINE_SCATTER_SUM
