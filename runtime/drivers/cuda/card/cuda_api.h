#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_API_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_API_H_

// The functions of NVIDIA's libraries that the driver calls. The first device to be made loads the libraries. The
// plugin does not link them, so that it loads on machines without a card and can name the missing library.

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

// Returns the initialised driver of this machine. Returns kUnavailable if there is none, if it is too old for this
// build, or if it finds no card. Later calls return the same result.
absl::StatusOr<const CudaApi*> LoadCuda();

// Returns the files to try for a library, in order. The first are in `folders`: each holds the library, or is a folder
// into which Python packages nvidia-* were installed. A name without a folder follows, for libraries that the process
// has loaded and for the system's search, and then the prefix of the toolkit.
std::vector<std::string> LibraryCandidates(const std::string& file, const std::vector<std::string>& folders,
                                           const std::string& cuda_home);

// Opens a library among those candidates, also in the folders of BOWLINE_CUDA_LIBRARIES. If there is none, returns
// kUnavailable, naming the places searched, the feature that needs the library, and the Python package that has it.
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
