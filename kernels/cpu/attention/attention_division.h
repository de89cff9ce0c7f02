#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_DIVISION_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_DIVISION_H_

// How attention is divided among threads, and the workspace that it then needs: functions of the signature and of what
// the instruction set says (attention_scratch.h).

#include <vector>

#include "kernels/cpu/attention/attention_scratch.h"
#include "kernels/cpu/isa/isa.h"

namespace bowline::kernels {

// Whether tensors may be multiplied as bf16. The scale is applied to the products then, and to minus infinity where a
// query does not see a key, which has to stay that.
inline bool AttentionMayMultiplyBf16(const AttentionShape& shape) {
  constexpr float kLeastScale = 0x1p-126f;  // smaller ones are taken for zero
  return shape.element == ElementType::kBF16 && shape.scale >= kLeastScale;
}

// Whether products are best those of pairs of bf16.
inline bool AttentionPrefersPairs(const AttentionShape& shape, Isa isa) {
  return isa == Isa::kAvx512Bf16 && AttentionMayMultiplyBf16(shape);
}

// Whether they are multiplied in AMX's tiles if the workspace allows: by the shape alone, because bits differ. Packing
// keys and values would not be worth it for a few rows.
inline bool AttentionIsForAmx(const AttentionShape& shape, Isa isa) {
  constexpr int64_t kLeastRows = 16;
  return isa == Isa::kAmx && AttentionMayMultiplyBf16(shape) &&
         shape.heads / shape.kv_heads * shape.queries >= kLeastRows;
}

// kAll, or kKeys and kQueries: the faster choice on `threads` threads.
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
