// A build without NCCL.

#include "runtime/drivers/cuda/nccl/communicators.h"

namespace bowline {

absl::StatusOr<std::unique_ptr<NcclLibrary>> OpenNccl(const CudaCard*, CudaMemory*, const std::vector<std::string>&) {
  return absl::UnavailableError(
      "this build has no NCCL: nccl.h was not beside cuda.h when it was made; build where it is, or leave out "
      "communicators=nccl");
}

}  // namespace bowline
