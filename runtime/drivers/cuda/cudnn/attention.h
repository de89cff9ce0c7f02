#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_ATTENTION_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_ATTENTION_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/cuda/kernel_program.h"
#include "runtime/drivers/cuda/card/cuda_card.h"
#include "runtime/hal/memory.h"

namespace bowline {

struct AttentionOptions {
  bool by_cudnn = false;                    // else by the driver's own kernels
  bool any_order = false;                   // gradients may be summed up in another order in each run
  std::vector<std::string> libraries = {};  // folders for cuDNN
};

// Attention by cuDNN, which compiles its kernels when it is made, so that a launch chooses nothing.
class Attention {
 public:
  virtual ~Attention() = default;

  // Takes the arguments of the registry's kernel. `scratch` has as many bytes as the object was created with.
  virtual absl::Status Submit(CUstream stream, absl::Span<const hal::DeviceAddress> arguments,
                              hal::DeviceAddress scratch) const = 0;
};

// The library may use `scratch_bytes` of workspace. Returns kUnavailable without cuDNN, kUnimplemented if cuDNN cannot
// compute the attention, kResourceExhausted if the workspace is too small for one group of heads, otherwise kInternal.
absl::StatusOr<std::unique_ptr<Attention>> CreateCudnnAttention(CudaCard* card,
                                                                const kernels::cuda::LibraryAttention& attention,
                                                                size_t scratch_bytes, const AttentionOptions& options);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_ATTENTION_H_
