// A build without NCCL.

#include "runtime/drivers/cuda/nccl/communicators.h"

namespace bowline {

absl::StatusOr<std::unique_ptr<NcclLibrary>> OpenNccl(const CudaCard*, CudaMemory*, const std::vector<std::string>&) {
  return absl::UnavailableError(
      "this build has no NCCL, because nccl.h was not beside cuda.h; add nccl.h there and build again, or leave out "
      "communicators=nccl");
}

}  // namespace bowline
