// For builds without cudnn_graph.h.
#include "runtime/drivers/cuda/cudnn/attention.h"

namespace bowline {

absl::StatusOr<std::unique_ptr<Attention>> CreateCudnnAttention(CudaCard*, const kernels::cuda::LibraryAttention&,
                                                                size_t, const AttentionOptions&) {
  return absl::UnavailableError(
      "this build has no cuDNN: there was no cudnn_graph.h beside the headers of CUDA; install the development files "
      "of "
      "cuDNN 9 and build again");
}

}  // namespace bowline
