#ifndef BOWLINE_KERNELS_SIGNATURES_PAGED_SIGNATURE_H_
#define BOWLINE_KERNELS_SIGNATURES_PAGED_SIGNATURE_H_

// Checks signatures of `sequence_positions`, `cache_write` and `paged_attention`. kernels/cpu/paged/paged_sequences.h
// explains their operands.

#include "kernels/registry/registry.h"
#include "kernels/signatures/paged_shape.h"

namespace bowline::kernels {

// rows [R+1], lengths [R]; positions [T].
absl::StatusOr<SequencePositionsShape> ParseSequencePositions(const Signature& signature);
// cache [N, S, K, D] (read and written), values [T, K, D], rows [R+1], lengths [R], blocks [R, M]. With the attribute
// format "int8" the cache is u8 [N, S, K, D + 4], in rows that types/cache_rows.h describes.
absl::StatusOr<CacheWriteShape> ParseCacheWrite(const Signature& signature);
// query [T, H, D], keys and values [N, S, K, D], rows [R+1], lengths [R], blocks [R, M]; out [T, H, D]. Attributes
// scale, window, which may be left out or 0, and format, by which keys and values are as that cache.
absl::StatusOr<PagedAttentionShape> ParsePagedAttention(const Signature& signature);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_PAGED_SIGNATURE_H_
