#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_NCCL_API_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_NCCL_API_H_

#include <nccl.h>

#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace bowline {

// The functions of NCCL that the driver calls, from a library that is loaded for the first group of ranks that lie on
// cards of their own.
struct NcclApi {
#define BOWLINE_NCCL_FUNCTION(name) decltype(&::name) name = nullptr;
#include "runtime/drivers/cuda/nccl/nccl_functions.inc"
#undef BOWLINE_NCCL_FUNCTION
  int version = 0;  // 22809
};

// Returns kUnavailable, naming the places searched for the library, or saying that it is too old. The library found
// first stays loaded, for all devices of the process.
absl::StatusOr<const NcclApi*> LoadNccl(const std::vector<std::string>& folders);

// "2.28.9"
std::string NcclVersionText(int version);

// Returns OK, or "ncclAllReduce: remote process exited (6): NCCL's last error": kUnavailable for an error that a peer
// or the network may have caused, else kInternal. ncclInProgress is OK.
absl::Status NcclStatus(const NcclApi& api, ncclResult_t result, absl::string_view function, ncclComm_t comm);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_NCCL_API_H_
