#include "runtime/drivers/cuda/card/cuda_api.h"

#include <cstdlib>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace bowline {
namespace {

#define BOWLINE_SYMBOL_TEXT_(name) #name
#define BOWLINE_SYMBOL_TEXT(name) BOWLINE_SYMBOL_TEXT_(name)

constexpr int kOldestDriver = 13000;

// "13.0"
std::string VersionText(int version) { return absl::StrCat(version / 1000, ".", version % 1000 / 10); }

absl::StatusOr<const CudaApi*> LoadAndInitialise() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::UnavailableError(absl::StrCat("no NVIDIA driver: ", ::dlerror(), "; install one for CUDA ",
                                               VersionText(kOldestDriver), ", or run the plan of another target"));
  }
  static CudaApi api;
  // First of all, because an old driver lacks functions.
  int version = 0;
  if (!FindSymbol(library, "cuDriverGetVersion", api.cuDriverGetVersion) ||
      api.cuDriverGetVersion(&version) != CUDA_SUCCESS || version < kOldestDriver) {
    return absl::UnavailableError(absl::StrCat("the NVIDIA driver is for CUDA ", VersionText(version),
                                               "; this build needs one for CUDA ", VersionText(kOldestDriver)));
  }
  std::string missing;
#define BOWLINE_CUDA_FUNCTION(name) \
  if (!FindSymbol(library, BOWLINE_SYMBOL_TEXT(name), api.name)) missing = BOWLINE_SYMBOL_TEXT(name);
#include "runtime/drivers/cuda/card/cuda_functions.inc"
#undef BOWLINE_CUDA_FUNCTION
  if (!missing.empty()) {
    return absl::UnavailableError(
        absl::StrCat("the NVIDIA driver, for CUDA ", VersionText(version), ", has no ", missing));
  }
  int cards = 0;
  absl::Status status = BOWLINE_CUDA(api, cuInit, 0);
  if (status.ok()) status = BOWLINE_CUDA(api, cuDeviceGetCount, &cards);
  if (status.ok() && cards == 0) status = absl::InternalError("the driver finds none");
  if (!status.ok()) {
    return absl::UnavailableError(absl::StrCat("no NVIDIA card can be used: ", status.message(),
                                               "; nvidia-smi says which ones there are, and CUDA_VISIBLE_DEVICES "
                                               "hides those that it does not name"));
  }
  return &api;
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<const CublasLtApi*> OpenCublasLt(const std::vector<std::string>& folders) {
  constexpr char kFile[] = "libcublasLt.so.13";
  BOWLINE_ASSIGN_OR_RETURN(void* const library,
                           OpenCudaLibrary(kFile, "products of matrices", "nvidia-cublas", folders));
  static CublasLtApi api;
  std::string missing;
#define BOWLINE_CUBLASLT_FUNCTION(name) \
  if (!FindSymbol(library, #name, api.name)) missing = #name;
#include "runtime/drivers/cuda/card/cublaslt_functions.inc"
#undef BOWLINE_CUBLASLT_FUNCTION
  if (!missing.empty()) return absl::UnavailableError(absl::StrCat(kFile, " has no function ", missing));
  return &api;
}

}  // namespace

absl::StatusOr<const CudaApi*> LoadCuda() {
  // Kept for ever, as the library is: threads of it may live until the process ends.
  static const auto* const loaded = new absl::StatusOr<const CudaApi*>(LoadAndInitialise());
  return *loaded;
}

std::vector<std::string> LibraryCandidates(const std::string& file, const std::vector<std::string>& folders,
                                           const std::string& cuda_home) {
  std::vector<std::string> candidates;
  for (const std::string& folder : folders) {
    for (const absl::string_view inside :
         {"", "nvidia/cu13/lib/", "nvidia/cublas/lib/", "nvidia/cudnn/lib/", "nvidia/nccl/lib/"}) {
      candidates.push_back(absl::StrCat(folder, "/", inside, file));
    }
  }
  candidates.push_back(file);
  if (!cuda_home.empty()) candidates.push_back(absl::StrCat(cuda_home, "/lib64/", file));
  candidates.push_back(absl::StrCat("/usr/local/cuda/lib64/", file));
  return candidates;
}

absl::StatusOr<void*> OpenCudaLibrary(const std::string& file, absl::string_view needed_by, absl::string_view package,
                                      const std::vector<std::string>& folders) {
  std::vector<std::string> all = folders;
  for (const absl::string_view folder : absl::StrSplit(Environment("BOWLINE_CUDA_LIBRARIES"), ':', absl::SkipEmpty())) {
    all.emplace_back(folder);
  }
  std::vector<std::string> failures;
  for (const std::string& path : LibraryCandidates(file, all, Environment("CUDA_HOME"))) {
    if (void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
    failures.emplace_back(::dlerror());
  }
  return absl::UnavailableError(absl::StrCat("no ", file, ", which ", needed_by, " need (",
                                             absl::StrJoin(failures, "; "), "); install the Python package ", package,
                                             " and name its site-packages folder in BOWLINE_CUDA_LIBRARIES, or set "
                                             "CUDA_HOME to a toolkit of CUDA 13"));
}

absl::StatusOr<const CublasLtApi*> LoadCublasLt(const std::vector<std::string>& folders) {
  static std::mutex mutex;
  static const CublasLtApi* found = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (found == nullptr) {
    BOWLINE_ASSIGN_OR_RETURN(found, OpenCublasLt(folders));
  }
  return found;
}

absl::Status CudaStatus(const CudaApi& api, CUresult result, absl::string_view function) {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char *name = nullptr, *text = nullptr;
  if (api.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
  if (api.cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) text = "no description";
  const std::string message = absl::StrCat(function, ": ", name, " (", static_cast<int>(result), "): ", text);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

absl::Status CublasLtStatus(const CublasLtApi& api, cublasStatus_t result, absl::string_view function) {
  if (result == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string message = absl::StrCat(function, ": ", api.cublasLtGetStatusName(result), " (",
                                           static_cast<int>(result), "): ", api.cublasLtGetStatusString(result));
  if (result == CUBLAS_STATUS_ALLOC_FAILED) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

}  // namespace bowline
