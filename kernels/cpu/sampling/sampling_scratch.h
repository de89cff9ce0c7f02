#ifndef BOWLINE_KERNELS_CPU_SAMPLING_SAMPLING_SCRATCH_H_
#define BOWLINE_KERNELS_CPU_SAMPLING_SAMPLING_SCRATCH_H_

#include <cstddef>

#include "kernels/signatures/sampling_signature.h"

namespace bowline::kernels {

// Bytes of workspace of sample_tokens on `threads` threads: LogitsWorkspaceBytes for each thread that can have a row.
size_t SampleTokensScratchBytes(const SampleTokensShape& shape, int threads);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_SAMPLING_SAMPLING_SCRATCH_H_
