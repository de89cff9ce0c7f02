#include "runtime/drivers/cuda/cudnn/cudnn_api.h"

#include <array>
#include <cstring>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "runtime/drivers/cuda/card/cuda_api.h"

namespace bowline {
namespace {

constexpr char kFile[] = "libcudnn.so.9";
// Older ones want a mask of padding in the backward pass where the number of keys is no multiple of 128.
constexpr size_t kOldest = 91600;

absl::StatusOr<const CudnnApi*> OpenCudnn(const std::vector<std::string>& folders) {
  BOWLINE_ASSIGN_OR_RETURN(void* const library,
                           OpenCudaLibrary(kFile, "attention by cuDNN", "nvidia-cudnn-cu13", folders));
  static CudnnApi api;
  std::string missing;
#define BOWLINE_CUDNN_FUNCTION(name) \
  if (!FindSymbol(library, #name, api.name)) missing = #name;
#include "runtime/drivers/cuda/cudnn/cudnn_functions.inc"
#undef BOWLINE_CUDNN_FUNCTION
  if (!missing.empty()) return absl::UnavailableError(absl::StrCat(kFile, " has no function ", missing));
  api.version = api.cudnnGetVersion();
  if (api.version < kOldest) {
    return absl::UnavailableError(absl::StrCat(kFile, " is of cuDNN ", CudnnVersionText(api.version),
                                               "; this build needs ", CudnnVersionText(kOldest), " or newer"));
  }
  return &api;
}

}  // namespace

absl::StatusOr<const CudnnApi*> LoadCudnn(const std::vector<std::string>& folders) {
  static std::mutex mutex;
  static const CudnnApi* found = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (found == nullptr) {
    BOWLINE_ASSIGN_OR_RETURN(found, OpenCudnn(folders));
  }
  return found;
}

std::string CudnnVersionText(size_t version) {
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

absl::Status CudnnStatus(const CudnnApi& api, cudnnStatus_t result, absl::string_view function) {
  if (result == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  const char* const name = api.cudnnGetErrorString(result);
  std::array<char, 1024> last = {};
  api.cudnnGetLastErrorString(last.data(), last.size() - 1);
  const std::string message = absl::StrCat(function, ": ", name == nullptr ? "an unknown status" : name, " (",
                                           static_cast<int>(result), ")", last[0] == '\0' ? "" : ": ", last.data());
  // Statuses of a kind share their thousands.
  if (result / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000) return absl::UnimplementedError(message);
  if (result == CUDNN_STATUS_ALLOC_FAILED || result == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      result == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
    return absl::ResourceExhaustedError(message);
  }
  return absl::InternalError(message);
}

}  // namespace bowline
