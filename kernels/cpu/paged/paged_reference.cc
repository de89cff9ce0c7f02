#include "kernels/cpu/paged/paged_reference.h"

#include <algorithm>
#include <cmath>

namespace bowline::kernels::reference {
namespace {

// body(row, sequence, position).
template <typename Body>
void ForEachRow(const PagedBatch& batch, Body body) {
  for (size_t r = 0; r < batch.lengths.size(); ++r) {
    for (int64_t t = batch.rows[r]; t < batch.rows[r + 1]; ++t) {
      body(t, static_cast<int64_t>(r), batch.lengths[r] - (batch.rows[r + 1] - batch.rows[r]) + (t - batch.rows[r]));
    }
  }
}

// The number of the token among all tokens that the cache has room for.
int64_t Slot(const PagedBatch& batch, int64_t sequence, int64_t position) {
  const int64_t block = batch.blocks[sequence * batch.table + position / batch.block_size];
  return block * batch.block_size + position % batch.block_size;
}

}  // namespace

std::vector<int32_t> SequencePositions(const PagedBatch& batch) {
  std::vector<int32_t> positions(batch.tokens, 0);
  ForEachRow(batch, [&](int64_t row, int64_t, int64_t position) { positions[row] = static_cast<int32_t>(position); });
  return positions;
}

std::vector<double> CacheWrite(const PagedBatch& batch, int64_t width, std::vector<double> cache,
                               const std::vector<double>& values) {
  ForEachRow(batch, [&](int64_t row, int64_t sequence, int64_t position) {
    const int64_t slot = Slot(batch, sequence, position);
    if (slot < batch.block_size) return;
    for (int64_t i = 0; i < width; ++i) cache[slot * width + i] = values[row * width + i];
  });
  return cache;
}

std::vector<double> PagedAttention(const PagedBatch& batch, const PagedHeads& s, const std::vector<double>& query,
                                   const std::vector<double>& keys, const std::vector<double>& values) {
  std::vector<double> out(query.size(), 0.0);
  ForEachRow(batch, [&](int64_t row, int64_t sequence, int64_t position) {
    const int64_t first = s.window == 0 ? 0 : std::max<int64_t>(0, position - s.window + 1);
    for (int64_t h = 0; h < s.query_heads; ++h) {
      const int64_t at = (row * s.query_heads + h) * s.head_dim, head = h / (s.query_heads / s.heads);
      const auto key = [&](int64_t j) { return (Slot(batch, sequence, j) * s.heads + head) * s.head_dim; };
      std::vector<double> p(position + 1, 0.0);
      double largest = -INFINITY, sum = 0;
      for (int64_t j = first; j <= position; ++j) {
        for (int64_t d = 0; d < s.head_dim; ++d) p[j] += s.scale * query[at + d] * keys[key(j) + d];
        largest = std::fmax(largest, p[j]);
      }
      for (int64_t j = first; j <= position; ++j) sum += p[j] = std::exp(p[j] - largest);
      for (int64_t j = first; j <= position; ++j) {
        for (int64_t d = 0; d < s.head_dim; ++d) out[at + d] += p[j] / sum * values[key(j) + d];
      }
    }
  });
  return out;
}

}  // namespace bowline::kernels::reference
