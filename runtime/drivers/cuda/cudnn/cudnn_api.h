#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_CUDNN_API_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_CUDNN_API_H_

// The graph API alone; it needs the types of the CUDA runtime, and none of its functions.
#include <cudnn_graph.h>

#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace bowline {

// The functions of cuDNN that the driver calls, from a library that is loaded for the first attention that may be
// computed by it.
struct CudnnApi {
#define BOWLINE_CUDNN_FUNCTION(name) decltype(&::name) name = nullptr;
#include "runtime/drivers/cuda/cudnn/cudnn_functions.inc"
#undef BOWLINE_CUDNN_FUNCTION
  size_t version = 0;  // 91900
};

// kUnavailable saying where the library was looked for, or that it is too old or of another major version. The same
// answer in every call once it was found: it stays for all devices of the process.
absl::StatusOr<const CudnnApi*> LoadCudnn(const std::vector<std::string>& folders);

// "9.19.0"
std::string CudnnVersionText(size_t version);

// OK, or "cudnnBackendFinalize: CUDNN_STATUS_BAD_PARAM (2000): what the library says of it". kUnimplemented for what
// the library does not support, kResourceExhausted for memory, else kInternal.
absl::Status CudnnStatus(const CudnnApi& api, cudnnStatus_t result, absl::string_view function);

}  // namespace bowline

#define BOWLINE_CUDNN(api, function, ...) ::bowline::CudnnStatus((api), (api).function(__VA_ARGS__), #function)

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CUDNN_CUDNN_API_H_
