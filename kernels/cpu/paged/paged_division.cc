#include "kernels/cpu/paged/paged_division.h"

#include "kernels/cpu/kernel_needs.h"
#include "kernels/signatures/paged_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {

int64_t PagedAttentionScratchFloats(const PagedAttentionShape& shape) { return (shape.paged.head_dim + 15) / 16 * 16; }

size_t PagedAttentionScratchBytes(const PagedAttentionShape& shape, int threads) {
  return static_cast<size_t>(PagedAttentionScratchFloats(shape) * threads) * sizeof(float);
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
