#include "runtime/drivers/cuda/nccl/nccl_api.h"

#include <mutex>

#include "absl/strings/str_cat.h"
#include "runtime/drivers/cuda/card/cuda_api.h"

namespace bowline {
namespace {

constexpr char kFile[] = "libnccl.so.2";
// The first that was built for CUDA 13.
constexpr int kOldest = NCCL_VERSION(2, 27, 7);

absl::StatusOr<const NcclApi*> OpenNcclLibrary(const std::vector<std::string>& folders) {
  BOWLINE_ASSIGN_OR_RETURN(void* const library,
                           OpenCudaLibrary(kFile, "ranks on several cards", "nvidia-nccl-cu13", folders));
  static NcclApi api;
  std::string missing;
#define BOWLINE_NCCL_FUNCTION(name) \
  if (!FindSymbol(library, #name, api.name)) missing = #name;
#include "runtime/drivers/cuda/nccl/nccl_functions.inc"
#undef BOWLINE_NCCL_FUNCTION
  if (!missing.empty()) return absl::UnavailableError(absl::StrCat(kFile, " has no function ", missing));
  if (const ncclResult_t result = api.ncclGetVersion(&api.version); result != ncclSuccess) {
    return NcclStatus(api, result, "ncclGetVersion", nullptr);
  }
  if (api.version < kOldest) {
    return absl::UnavailableError(absl::StrCat(kFile, " is of NCCL ", NcclVersionText(api.version),
                                               "; this build needs ", NcclVersionText(kOldest), " or newer"));
  }
  return &api;
}

}  // namespace

absl::StatusOr<const NcclApi*> LoadNccl(const std::vector<std::string>& folders) {
  static std::mutex mutex;
  static const NcclApi* found = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (found == nullptr) {
    BOWLINE_ASSIGN_OR_RETURN(found, OpenNcclLibrary(folders));
  }
  return found;
}

std::string NcclVersionText(int version) {
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

absl::Status NcclStatus(const NcclApi& api, ncclResult_t result, absl::string_view function, ncclComm_t comm) {
  if (result == ncclSuccess || result == ncclInProgress) return absl::OkStatus();
  const char* const text = api.ncclGetErrorString(result);
  const char* const last = api.ncclGetLastError(comm);
  const std::string message =
      absl::StrCat(function, ": ", text == nullptr ? "an unknown error" : text, " (", static_cast<int>(result), ")",
                   last == nullptr || *last == '\0' ? "" : ": ", last == nullptr ? "" : last);
  if (result == ncclRemoteError || result == ncclSystemError) return absl::UnavailableError(message);
  return absl::InternalError(message);
}

}  // namespace bowline
