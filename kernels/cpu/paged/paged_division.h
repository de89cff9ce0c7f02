#ifndef BOWLINE_KERNELS_CPU_PAGED_PAGED_DIVISION_H_
#define BOWLINE_KERNELS_CPU_PAGED_PAGED_DIVISION_H_

// The workspace of paged_attention: a function of the signature.

#include <cstddef>
#include <cstdint>

#include "kernels/signatures/paged_shape.h"

namespace bowline::kernels {

// Floats for the sums of one head, of each thread.
int64_t PagedAttentionScratchFloats(const PagedAttentionShape& shape);
size_t PagedAttentionScratchBytes(const PagedAttentionShape& shape, int threads);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PAGED_PAGED_DIVISION_H_
