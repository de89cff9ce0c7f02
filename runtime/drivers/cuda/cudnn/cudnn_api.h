#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_CUDNN_API_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_CUDNN_API_H_

// Includes the graph API only. It needs the types of the CUDA runtime, and none of its functions.
#include <cudnn_graph.h>

#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace bowline {

// The functions of cuDNN that the driver calls. The library is loaded for the first attention that cuDNN may
// compute.
struct CudnnApi {
#define BOWLINE_CUDNN_FUNCTION(name) decltype(&::name) name = nullptr;
#include "runtime/drivers/cuda/cudnn/cudnn_functions.inc"
#undef BOWLINE_CUDNN_FUNCTION
  size_t version = 0;  // 91900
};

// Returns kUnavailable if the library is missing, too old or of another major version; the message names the places
// searched. The library stays loaded. Later calls return the same object.
absl::StatusOr<const CudnnApi*> LoadCudnn(const std::vector<std::string>& folders);

// "9.19.0"
std::string CudnnVersionText(size_t version);

// Returns OK, or "cudnnBackendFinalize: CUDNN_STATUS_BAD_PARAM (2000): MESSAGE OF CUDNN": kUnimplemented if the library
// does not support the request, kResourceExhausted for memory, else kInternal.
absl::Status CudnnStatus(const CudnnApi& api, cudnnStatus_t result, absl::string_view function);

}  // namespace bowline

#define BOWLINE_CUDNN(api, function, ...) ::bowline::CudnnStatus((api), (api).function(__VA_ARGS__), #function)

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_CUDNN_API_H_
