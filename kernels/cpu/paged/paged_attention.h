#ifndef BOWLINE_KERNELS_CPU_PAGED_PAGED_ATTENTION_H_
#define BOWLINE_KERNELS_CPU_PAGED_PAGED_ATTENTION_H_

// The algorithm of paged_attention, which paged_sequences.h defines.
//
// A sequence with one row, as decoding has, is divided by key heads and by ranges of positions that begin at multiples
// of a length that follows from the signature. A piece reads each key and value once for all query heads of the group,
// with lanes of vectors along head_dim, and the sums of the ranges are joined in the order of the ranges.
//
// The queries of a sequence with several rows are divided, for each key head, into tiles of up to kTileQueries, in the
// order of rows and of heads in a row. Keys and values of a tile are copied from their blocks, a few at a time, into
// the buffers that attention (attention/attention.h) computes with, one lane for each query.
//
// So how work is divided depends on the signature and on the data alone, and not on the number of threads. Both ways
// compute in f32.
//
// A row has the same bits whatever is at positions that it does not see, infinite and NaN too: it depends on no key,
// value or query of another sequence, nor of a later row of its own.

#include <cstdint>

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/paged/paged_division.h"
#include "kernels/signatures/paged_shape.h"

namespace bowline::kernels {

struct PagedAttentionArguments {
  const void *query, *keys, *values;
  void* out;
};

// A unit of work for a sequence with one row: positions [begin, end) of one key head.
struct PagedPiece {
  const int32_t* table;
  int64_t row, head, begin, end;
  // If the row has several pieces: the output for the partial sums of the group's query heads, then their maxima and
  // sums of weights, as PagedPartial lays them out.
  float* partial;
};

// Queries [first, first + count) of the rows from `row` on, for one key head; query i is head i % group of row
// row + i / group, whose position is position + i / group.
struct PagedTile {
  const int32_t* table;
  int64_t row, position, head, first, count;
};

struct PagedAttentionTable {
  void (*piece)(const PagedAttentionShape& shape, const PagedAttentionArguments& arguments, const PagedPiece& piece,
                float* scratch);
  // Joins the partial results of a row and key head, `pieces` consecutive ones at `partial`, to the row's output.
  void (*join)(const PagedAttentionShape& shape, const PagedAttentionArguments& arguments, int64_t row, int64_t head,
               int64_t pieces, const float* partial);
  void (*tile)(const PagedAttentionShape& shape, const PagedAttentionArguments& arguments, const PagedTile& tile,
               float* scratch);
};
BOWLINE_DECLARE_ISA_VARIANTS(PagedAttentionTable, kPagedAttention)

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PAGED_PAGED_ATTENTION_H_
