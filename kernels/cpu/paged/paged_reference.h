#ifndef BOWLINE_KERNELS_CPU_PAGED_PAGED_REFERENCE_H_
#define BOWLINE_KERNELS_CPU_PAGED_PAGED_REFERENCE_H_

// Reference implementations of this folder's kernels, in f64 and in the plainest way, for valid rows, lengths and
// blocks. They follow the definitions and share no code with the fast kernels.

#include <cstdint>
#include <vector>

namespace bowline::kernels::reference {

struct PagedBatch {
  int64_t tokens;                              // rows of the batch, including those of no sequence
  std::vector<int32_t> rows, lengths, blocks;  // see paged_sequences.h; `blocks` has `table` blocks per sequence
  int64_t table, block_size;
};

// Returns the position of each row: [tokens].
std::vector<int32_t> SequencePositions(const PagedBatch& batch);

// Returns the cache [blocks, block_size, width] after the values [tokens, width] were written to it.
std::vector<double> CacheWrite(const PagedBatch& batch, int64_t width, std::vector<double> cache,
                               const std::vector<double>& values);

struct PagedHeads {
  int64_t query_heads, heads, head_dim;
  double scale;
  int64_t window = 0;  // a row sees this many positions, its own and those before it; 0: all
};

// query [tokens, query_heads, head_dim], keys and values [blocks, block_size, heads, head_dim]; returns query's shape.
std::vector<double> PagedAttention(const PagedBatch& batch, const PagedHeads& heads, const std::vector<double>& query,
                                   const std::vector<double>& keys, const std::vector<double>& values);

}  // namespace bowline::kernels::reference

#endif  // BOWLINE_KERNELS_CPU_PAGED_PAGED_REFERENCE_H_
