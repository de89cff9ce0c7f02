#ifndef BOWLINE_KERNELS_CUDA_ATTENTION_PROGRAM_H_
#define BOWLINE_KERNELS_CUDA_ATTENTION_PROGRAM_H_

#include "kernels/cuda/kernel_program.h"

namespace bowline::kernels::cuda {

// Returns whether cuDNN computes it on some card: bf16, heads of at most 256 elements in eights, rows that f32 counts.
bool MayBeByLibrary(const AttentionShape& shape, bool backward);

// The bytes of workspace that cuDNN's backward pass needs at most, as its kernels were found to ask for
// (test/Unit/Kernels/cuda_program_test.cc has figures). In order: a bf16 matrix of queries and keys for each head,
// whose products with keys are summed up by one block each. Else an f32 copy of dq, to which blocks of keys add in any
// order, and another one on cards before sm_90. Both: delta in f32, and bf16 dk and dv for each query head where heads
// share keys. The forward pass needs at most kForwardWorkspace.
size_t BackwardWorkspace(const AttentionShape& shape, bool in_order);
inline constexpr size_t kForwardWorkspace = 4096;
// The most that a plan gives. With less than it wants, the library computes some heads at a time.
inline constexpr size_t kMostWorkspace = size_t{256} << 20;

}  // namespace bowline::kernels::cuda

#endif  // BOWLINE_KERNELS_CUDA_ATTENTION_PROGRAM_H_
