#include "kernels/cpu/paged/paged_division.h"

#include <algorithm>

#include "kernels/cpu/kernel_needs.h"
#include "kernels/signatures/paged_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {

namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

PagedDivision DividePagedAttention(const PagedAttentionShape& shape) {
  // Long enough that joining ranges is little work, and few enough that their sums are little memory.
  constexpr int64_t kLeast = 512, kMostRanges = 16;
  const PagedShape& paged = shape.paged;
  const int64_t positions = paged.table * paged.block_size;
  PagedDivision division;
  division.range = std::max(kLeast, CeilDiv(CeilDiv(positions, kMostRanges), kLeast) * kLeast);
  division.most_pieces = CeilDiv(positions, division.range);
  if (shape.window != 0) {
    division.most_pieces = std::min(division.most_pieces, CeilDiv(shape.window, division.range) + 1);
  }
  division.thread_floats = PaddedTo16(std::max(PagedTileMemory(paged.head_dim).floats, PagedPieceMemory(shape).floats));
  division.partial_floats = PagedPartial(shape).floats;
  division.partials =
      division.most_pieces == 1 ? 0 : std::min(paged.tokens, paged.sequences) * paged.heads * division.most_pieces;
  return division;
}

size_t PagedAttentionScratchBytes(const PagedAttentionShape& shape, int threads) {
  const PagedDivision division = DividePagedAttention(shape);
  return static_cast<size_t>(division.thread_floats * threads + division.partial_floats * division.partials) *
         sizeof(float);
}

absl::StatusOr<size_t> PagedAttentionScratch(const Signature& signature, Isa) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const PagedAttentionShape shape, ParsePagedAttention(signature));
  return PagedAttentionScratchBytes(shape, signature.threads);
}

absl::StatusOr<size_t> CacheWriteScratch(const Signature& signature, Isa) {
  BOWLINE_KERNEL_RETURN_IF_ERROR(ParseCacheWrite(signature).status());
  return 0;
}

absl::StatusOr<size_t> SequencePositionsScratch(const Signature& signature, Isa) {
  BOWLINE_KERNEL_RETURN_IF_ERROR(ParseSequencePositions(signature).status());
  return 0;
}

}  // namespace bowline::kernels
