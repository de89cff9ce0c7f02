#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_DIVISION_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_DIVISION_H_

// How attention is divided among threads, and the workspace that it then needs: functions of the signature and of what
// the instruction set says (attention_scratch.h).

#include <vector>

#include "kernels/cpu/attention/attention_scratch.h"
#include "kernels/cpu/isa/isa.h"

namespace bowline::kernels {

// Whether products are best those of pairs of bf16.
inline bool AttentionPrefersPairs(Isa isa) { return isa == Isa::kAvx512Bf16; }

// kAll, or kKeys and kQueries: what `threads` threads are sooner done with.
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
