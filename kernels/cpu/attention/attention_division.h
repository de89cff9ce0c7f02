#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_DIVISION_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_DIVISION_H_

// The division of attention among threads, and the workspace that it needs. Both depend only on the signature and the
// sizes of the instruction set (attention_scratch.h).

#include <vector>

#include "kernels/cpu/attention/attention_scratch.h"
#include "kernels/cpu/isa/isa.h"

namespace bowline::kernels {

// Returns whether tensors may be multiplied as bf16. The kernel then applies the scale to the products, also to the
// minus infinity of masked keys, which must stay minus infinity: the scale must be positive and not subnormal.
inline bool AttentionMayMultiplyBf16(const AttentionShape& shape) {
  constexpr float kLeastScale = 0x1p-126f;  // smaller ones are taken for zero
  return shape.element == ElementType::kBF16 && shape.scale >= kLeastScale;
}

// Returns whether multiplying pairs of bf16 is the fastest way on `isa`.
inline bool AttentionPrefersPairs(const AttentionShape& shape, Isa isa) {
  return isa == Isa::kAvx512Bf16 && AttentionMayMultiplyBf16(shape);
}

// Returns whether products run in AMX tiles if the workspace allows it. Depends on the shape alone, because the
// result's bits differ. For a few rows, packing keys and values would not pay.
inline bool AttentionIsForAmx(const AttentionShape& shape, Isa isa) {
  constexpr int64_t kLeastRows = 16;
  return isa == Isa::kAmx && AttentionMayMultiplyBf16(shape) &&
         shape.heads / shape.kv_heads * shape.queries >= kLeastRows;
}

// The parts of the backward pass, whichever choice is faster on `threads` threads: {kAll} or {kKeys, kQueries}.
std::vector<BackwardPart> BackwardPartsFor(const AttentionShape& shape, int threads,
                                           const AttentionBackwardSizes& sizes);

// Floats of scratch of each thread of a forward or backward pass, and bytes of all.
size_t ForwardScratchBytes(const AttentionShape& shape, int threads, const AttentionForwardSizes& sizes);
size_t BackwardScratchFloats(const AttentionShape& shape, const std::vector<BackwardPart>& parts,
                             const AttentionBackwardSizes& sizes);
size_t BackwardScratchBytes(const AttentionShape& shape, int threads, const std::vector<BackwardPart>& parts,
                            const AttentionBackwardSizes& sizes);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_DIVISION_H_
