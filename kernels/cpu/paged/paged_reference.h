#ifndef BOWLINE_KERNELS_CPU_PAGED_PAGED_REFERENCE_H_
#define BOWLINE_KERNELS_CPU_PAGED_PAGED_REFERENCE_H_

// References of the kernels of this folder, in f64 and in the plainest way, for valid rows, lengths and blocks.
// Written from the definitions, sharing no code with the fast versions.

#include <cstdint>
#include <vector>

namespace bowline::kernels::reference {

struct PagedBatch {
  int64_t tokens;                              // rows, those of no sequence among them
  std::vector<int32_t> rows, lengths, blocks;  // blocks: a table of `table` blocks for each sequence
  int64_t table, block_size;
};

// [tokens].
std::vector<int32_t> SequencePositions(const PagedBatch& batch);

// cache [blocks, block_size, width] afterwards, of values [tokens, width].
std::vector<double> CacheWrite(const PagedBatch& batch, int64_t width, std::vector<double> cache,
                               const std::vector<double>& values);

struct PagedHeads {
  int64_t query_heads, heads, head_dim;
  double scale;
  int64_t window = 0;  // positions up to the row's own that it sees; 0: all
};

// query [tokens, query_heads, head_dim], keys and values [blocks, block_size, heads, head_dim].
std::vector<double> PagedAttention(const PagedBatch& batch, const PagedHeads& heads, const std::vector<double>& query,
                                   const std::vector<double>& keys, const std::vector<double>& values);

}  // namespace bowline::kernels::reference

#endif  // BOWLINE_KERNELS_CPU_PAGED_PAGED_REFERENCE_H_
