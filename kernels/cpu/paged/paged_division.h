#ifndef BOWLINE_KERNELS_CPU_PAGED_PAGED_DIVISION_H_
#define BOWLINE_KERNELS_CPU_PAGED_PAGED_DIVISION_H_

// The division of paged_attention into units of work, and its workspace. Both depend only on the signature, not on the
// instruction set. Functions that *_isa.cc files call are always inlined (isa/isa.h).

#include <cstddef>
#include <cstdint>

#include "kernels/signatures/paged_shape.h"

namespace bowline::kernels {

#define BOWLINE_PAGED_INLINE inline __attribute__((always_inline))

static constexpr BOWLINE_PAGED_INLINE int64_t PaddedTo16(int64_t value) { return (value + 15) / 16 * 16; }

// Query heads that share a key head.
static BOWLINE_PAGED_INLINE int64_t PagedGroup(const PagedAttentionShape& shape) {
  return shape.query_heads / shape.paged.heads;
}

// The partial result of a piece, in floats: sums [group][padded head_dim], maxima and sums of weights.
struct PagedPartial {
  BOWLINE_PAGED_INLINE explicit PagedPartial(const PagedAttentionShape& shape)
      : padded(PaddedTo16(shape.paged.head_dim)),
        maxima(PagedGroup(shape) * padded),
        weights(maxima + PagedGroup(shape)),
        floats(PaddedTo16(weights + PagedGroup(shape))) {}

  int64_t padded, maxima, weights, floats;
};

// The workspace of a thread that computes a tile, in floats from its beginning. Vectors have 16 lanes at most.
struct PagedTileMemory {
  static constexpr int64_t kTileQueries = 64, kBlockKeys = 128, kMostStrip = 32;

  BOWLINE_PAGED_INLINE explicit PagedTileMemory(int64_t head_dim) {
    const int64_t padded = PaddedTo16(head_dim);
    out = kTileQueries * padded;
    maximum = out + kTileQueries * padded;
    sum = maximum + kTileQueries;
    scores = sum + kTileQueries;
    keys = scores + kBlockKeys * kMostStrip;
    values = keys + kBlockKeys * padded;
    floats = values + kBlockKeys * padded;
  }

  static constexpr int64_t query = 0;
  int64_t out, maximum, sum, scores, keys, values, floats;
};

// The workspace of a thread that computes a piece. Query heads are computed four at a time, each in a quarter of the
// lanes of a vector of scores.
struct PagedPieceMemory {
  static constexpr int64_t kBlockKeys = 64, kSlots = 4, kMostLanes = 16;

  BOWLINE_PAGED_INLINE explicit PagedPieceMemory(const PagedAttentionShape& shape) {
    const int64_t groups = (PagedGroup(shape) + kSlots - 1) / kSlots, padded = PaddedTo16(shape.paged.head_dim);
    out = groups * kSlots * padded;
    maximum = out + groups * kSlots * padded;
    sum = maximum + groups * kMostLanes;
    scores = sum + groups * kMostLanes;
    floats = scores + kBlockKeys * kSlots;
  }

  static constexpr int64_t query = 0;
  int64_t out, maximum, sum, scores, floats;
};

struct PagedDivision {
  int64_t range;           // number of positions of a piece
  int64_t most_pieces;     // maximal number of pieces of a row and key head
  int64_t thread_floats;   // workspace of a thread, in floats
  int64_t partial_floats;  // size of the partial result of a piece, in floats
  int64_t partials;        // maximal number of partial results that are kept at once
};
PagedDivision DividePagedAttention(const PagedAttentionShape& shape);

size_t PagedAttentionScratchBytes(const PagedAttentionShape& shape, int threads);

#undef BOWLINE_PAGED_INLINE

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PAGED_PAGED_DIVISION_H_
