#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_API_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_API_H_

// The functions of NVIDIA's libraries that the driver calls, from libraries that are loaded when the first device is
// made: the plugin links none of them, so that it loads, and says what is missing, on machines without a card.

#include <cublasLt.h>
#include <cuda.h>
#include <dlfcn.h>

#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace bowline {

// cuda.h renames functions whose form has changed (cuMemAlloc is cuMemAlloc_v2); members and symbols have the new
// names.
struct CudaApi {
#define BOWLINE_CUDA_FUNCTION(name) decltype(&::name) name = nullptr;
#include "runtime/drivers/cuda/card/cuda_functions.inc"
#undef BOWLINE_CUDA_FUNCTION
};

struct CublasLtApi {
#define BOWLINE_CUBLASLT_FUNCTION(name) decltype(&::name) name = nullptr;
#include "runtime/drivers/cuda/card/cublaslt_functions.inc"
#undef BOWLINE_CUBLASLT_FUNCTION
};

// The driver of this machine, initialised. kUnavailable where there is none, where it is too old for this build, or
// where it finds no card. The same answer in every call.
absl::StatusOr<const CudaApi*> LoadCuda();

// The files that are tried for a library, in order. Each of `folders` is one that holds it, or one into which the
// Python packages nvidia-* were installed. Then what the process has loaded and the system's search (a name without a
// folder), and the prefix of the toolkit.
std::vector<std::string> LibraryCandidates(const std::string& file, const std::vector<std::string>& folders,
                                           const std::string& cuda_home);

// A library among those candidates, also of the folders in BOWLINE_CUDA_LIBRARIES. kUnavailable saying where it was
// looked for, what needs it, and the Python package that has it.
absl::StatusOr<void*> OpenCudaLibrary(const std::string& file, absl::string_view needed_by, absl::string_view package,
                                      const std::vector<std::string>& folders);

template <typename Function>
bool FindSymbol(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

// kUnavailable, naming the places searched. The library found first stays loaded, for all devices of the process.
absl::StatusOr<const CublasLtApi*> LoadCublasLt(const std::vector<std::string>& folders);

// OK, or "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory": kResourceExhausted for memory, else kInternal.
absl::Status CudaStatus(const CudaApi& api, CUresult result, absl::string_view function);
absl::Status CublasLtStatus(const CublasLtApi& api, cublasStatus_t result, absl::string_view function);

}  // namespace bowline

#define BOWLINE_CUDA(api, function, ...) ::bowline::CudaStatus((api), (api).function(__VA_ARGS__), #function)
#define BOWLINE_CUBLASLT(api, function, ...) ::bowline::CublasLtStatus((api), (api).function(__VA_ARGS__), #function)

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_API_H_
