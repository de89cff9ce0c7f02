#ifndef BOWLINE_TEST_UNIT_KERNELS_PAGED_PROBLEM_H_
#define BOWLINE_TEST_UNIT_KERNELS_PAGED_PROBLEM_H_

// Random batches of sequences whose keys and values lie in blocks of a cache, for tests of kernels on any device.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cpu/paged/paged_reference.h"
#include "test/Unit/Kernels/stored_testing.h"
#include "types/cache_rows.h"

namespace bowline::kernels::testing {

struct PagedProblem {
  reference::PagedBatch batch;
  reference::PagedHeads heads;
  int64_t blocks;

  int64_t Sequences() const { return static_cast<int64_t>(batch.lengths.size()); }
  int64_t Width() const { return heads.heads * heads.head_dim; }
  int64_t CacheElements() const { return blocks * batch.block_size * Width(); }
  int64_t QueryElements() const { return batch.tokens * heads.query_heads * heads.head_dim; }

  // Which tokens of the cache are those of a sequence.
  std::vector<bool> Used() const {
    std::vector<bool> used(blocks * batch.block_size);
    for (int64_t r = 0; r < Sequences(); ++r) {
      for (int64_t p = 0; p < batch.lengths[r]; ++p) {
        const int64_t block = batch.blocks[r * batch.table + p / batch.block_size];
        used[block * batch.block_size + p % batch.block_size] = true;
      }
    }
    used[0] = false;
    return used;
  }
};

// `most_positions` of a sequence. Some sequences have no rows, some one (decode), some several, some all that they
// have (a prompt); rows behind the last sequence are padding.
inline PagedProblem RandomPaged(std::mt19937_64& random, int64_t most_positions) {
  const auto up_to = [&](int64_t most) { return 1 + static_cast<int64_t>(random() % most); };
  PagedProblem p;
  reference::PagedBatch& b = p.batch;
  b.block_size = up_to(33);
  b.table = up_to(std::max<int64_t>(1, most_positions / b.block_size));
  p.heads.heads = up_to(3);
  p.heads.query_heads = p.heads.heads * (random() % 4 == 0 ? up_to(9) : up_to(4));
  p.heads.head_dim = random() % 3 == 0 ? int64_t{16} << random() % 4 : up_to(130);
  p.heads.scale = 1 / std::sqrt(static_cast<double>(p.heads.head_dim));
  const int64_t sequences = up_to(6), positions = b.table * b.block_size;
  b.rows = {0};
  int64_t used = 0;
  for (int64_t r = 0; r < sequences; ++r) {
    const int64_t kind = random() % 5, length = kind == 0 ? 0 : random() % 3 == 0 ? positions : up_to(positions);
    const int64_t rows = kind == 0      ? 0
                         : kind < 3     ? 1
                         : kind == 3    ? std::min(length, up_to(40))
                         : random() % 2 ? length
                                        : up_to(length);
    b.rows.push_back(static_cast<int32_t>(b.rows.back() + rows));
    b.lengths.push_back(static_cast<int32_t>(length));
    used += (length + b.block_size - 1) / b.block_size;
  }
  b.tokens = b.rows.back() + (random() % 2 ? random() % 5 : 0);
  b.tokens = std::max<int64_t>(b.tokens, 1);
  p.blocks = 1 + used + random() % 3;
  std::vector<int32_t> order(p.blocks - 1);
  std::iota(order.begin(), order.end(), 1);
  std::shuffle(order.begin(), order.end(), random);
  b.blocks.assign(sequences * b.table, 0);
  for (int64_t r = 0; r < sequences; ++r) {
    for (int64_t i = 0; i * b.block_size < b.lengths[r]; ++i) {
      b.blocks[r * b.table + i] = order.back();
      order.pop_back();
    }
  }
  return p;
}

// Blocks that lie before the windows of all rows of their sequence are null, as if another sequence had them now.
inline void ForgetBlocksBeforeWindows(PagedProblem& p) {
  if (p.heads.window == 0) return;
  for (int64_t r = 0; r < p.Sequences(); ++r) {
    const int64_t first = p.batch.lengths[r] - (p.batch.rows[r + 1] - p.batch.rows[r]) - p.heads.window + 1;
    for (int64_t i = 0; (i + 1) * p.batch.block_size <= first; ++i) p.batch.blocks[r * p.batch.table + i] = 0;
  }
}

// A cache of which all that is no token of a sequence is NaN.
inline Stored RandomCache(std::mt19937_64& random, DType dtype, const PagedProblem& p, float magnitude = 1.0f) {
  Floats values = RandomFloats(random, p.CacheElements(), magnitude);
  const std::vector<bool> used = p.Used();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!used[i / p.Width()]) values[i] = NAN;
  }
  return Stored(dtype, values);
}

inline Signature Positions(const PagedProblem& p, int threads = 1) {
  const int64_t r = p.Sequences();
  return {"sequence_positions",
          {},
          {In({r + 1}, DType::kI32), In({r}, DType::kI32), Out({p.batch.tokens}, DType::kI32)},
          threads};
}

inline Attribute Format(std::string_view format) { return {"format", {}, {}, std::string(format)}; }

// The shape of a cache, which has rows of int8 where it is of u8.
inline std::vector<int64_t> CacheShape(const PagedProblem& p, DType cache) {
  const int64_t row = cache == DType::kU8 ? Int8RowBytes(p.heads.head_dim) : p.heads.head_dim;
  return {p.blocks, p.batch.block_size, p.heads.heads, row};
}

inline Signature Write(const PagedProblem& p, DType cache, DType values, int threads) {
  const int64_t r = p.Sequences();
  Signature signature = {"cache_write",
                         {},
                         {{Access::kReadWrite, cache, CacheShape(p, cache)},
                          In({p.batch.tokens, p.heads.heads, p.heads.head_dim}, values),
                          In({r + 1}, DType::kI32),
                          In({r}, DType::kI32),
                          In({r, p.batch.table}, DType::kI32)},
                         threads};
  if (cache == DType::kU8) signature.attributes.push_back(Format(kInt8Rows));
  return signature;
}

inline Signature Attend(const PagedProblem& p, DType query, DType cache, int threads) {
  const std::vector<int64_t> rows = {p.batch.tokens, p.heads.query_heads, p.heads.head_dim},
                             blocks = CacheShape(p, cache);
  const int64_t r = p.Sequences();
  Signature signature = {"paged_attention",
                         {Float("scale", p.heads.scale)},
                         {In(rows, query), In(blocks, cache), In(blocks, cache), In({r + 1}, DType::kI32),
                          In({r}, DType::kI32), In({r, p.batch.table}, DType::kI32), Out(rows, query)},
                         threads};
  if (p.heads.window != 0) signature.attributes.push_back(Int("window", p.heads.window));
  if (cache == DType::kU8) signature.attributes.push_back(Format(kInt8Rows));
  return signature;
}

// How far a row of attention in f32 may be from the exact result, of which `most_seen` positions are seen, with keys,
// values and the row's queries of absolute value `magnitude` at most. With u = 2^-24:
//   - a score is a sum of D products, times the scale: off by (D + 3) u times the sum of their absolute values, which
//     is s = scale D magnitude^2 at most;
//   - it is multiplied by log2(e), and the maximum is subtracted: 4 u s;
//   - 2^x is off by 3 u of itself, and the sum so far is multiplied by the shrinking of the maximum, an
//     exponential too, at most once for each position, which is off by 4 u of itself and rounds once;
//   - sums of as many terms as there are positions are off by a u for each.
// A weight is a quotient of two such, so each of this counts twice; the result is a mean of values.
inline double PagedBound(const reference::PagedHeads& heads, double most_seen, double magnitude) {
  const double dim = static_cast<double>(heads.head_dim), s = std::abs(heads.scale) * dim * magnitude * magnitude;
  return 2 * 0x1p-24 * ((dim + 7) * s + 6 * most_seen + 8) * magnitude;
}

}  // namespace bowline::kernels::testing

#endif  // BOWLINE_TEST_UNIT_KERNELS_PAGED_PROBLEM_H_
