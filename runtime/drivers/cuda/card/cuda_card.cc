#include "runtime/drivers/cuda/card/cuda_card.h"

#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"

// The device code of kernels/cuda, for several architectures.
extern "C" const unsigned char bowline_cuda_fatbin[];

namespace bowline {
namespace {

// The context that this thread made current last. Contexts are never destroyed, so that it stays valid.
thread_local CUcontext current_context = nullptr;

}  // namespace

absl::StatusOr<CudaCard*> CudaCard::Open(std::optional<uint64_t> number, int rank) {
  BOWLINE_ASSIGN_OR_RETURN(const CudaApi* const api, LoadCuda());
  int cards = 0;
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(*api, cuDeviceGetCount, &cards));
  if (number.has_value() && *number >= static_cast<uint64_t>(cards)) {
    return absl::InvalidArgumentError(absl::StrCat("the driver 'cuda': device=", *number, ", but this machine has ",
                                                   cards, cards == 1 ? " card" : " cards", "; count from 0"));
  }
  const int chosen = number.has_value() ? static_cast<int>(*number) : rank % cards;
  static std::mutex mutex;
  static auto* const opened = new std::map<int, std::unique_ptr<CudaCard>>();
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<CudaCard>& card = (*opened)[chosen];
  if (card == nullptr) {
    std::unique_ptr<CudaCard> fresh(new CudaCard(api));
    BOWLINE_RETURN_IF_ERROR(Annotate(fresh->Initialise(chosen), absl::StrCat("card ", chosen)));
    card = std::move(fresh);
  }
  return card.get();
}

absl::Status CudaCard::Initialise(int number) {
  CUdevice device = 0;
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(*api_, cuDeviceGet, &device, number));
  std::array<char, 256> name = {};
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(*api_, cuDeviceGetName, name.data(), static_cast<int>(name.size()) - 1, device));
  name_ = name.data();
  CUuuid uuid = {};
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(*api_, cuDeviceGetUuid, &uuid, device));
  static_assert(sizeof(uuid) == sizeof(identity_));
  std::memcpy(identity_.data(), &uuid, sizeof(uuid));
  const auto attribute = [&](CUdevice_attribute which, int& value) {
    return BOWLINE_CUDA(*api_, cuDeviceGetAttribute, &value, which, device);
  };
  BOWLINE_RETURN_IF_ERROR(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major_));
  BOWLINE_RETURN_IF_ERROR(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor_));
  BOWLINE_RETURN_IF_ERROR(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, shared_bytes_));
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(*api_, cuDevicePrimaryCtxRetain, &context_, device));
  BOWLINE_RETURN_IF_ERROR(MakeCurrent());
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(*api_, cuCtxGetStreamPriorityRange, &lowest_priority_, &highest_priority_));
  BOWLINE_ASSIGN_OR_RETURN(clock_, CudaClock::Create(*api_));
  return absl::OkStatus();
}

absl::Status CudaCard::MakeCurrent() const {
  if (current_context == context_) return absl::OkStatus();
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(*api_, cuCtxSetCurrent, context_));
  current_context = context_;
  return absl::OkStatus();
}

absl::StatusOr<CUfunction> CudaCard::KernelFunction(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = functions_.find(name);
  if (found != functions_.end()) return found->second;
  if (kernels_ == nullptr) {
    absl::StatusOr<CUmodule> module = LoadModule(
        *api_, bowline_cuda_fatbin,
        absl::StrCat("this driver's kernels on '", name_, "' (compute capability ", major_, ".", minor_, ")"));
    // The image is part of this driver, so a failure is an internal error, not the user's mistake.
    if (!module.ok()) return absl::InternalError(module.status().message());
    kernels_ = *module;
  }
  BOWLINE_ASSIGN_OR_RETURN(const CUfunction function, FindFunction(*api_, kernels_, name));
  functions_.emplace(name, function);
  return function;
}

absl::StatusOr<CudaCard::Blas> CudaCard::OpenBlas(const std::vector<std::string>& folders) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (blas_.handle == nullptr) {
    BOWLINE_ASSIGN_OR_RETURN(blas_.api, LoadCublasLt(folders));
    BOWLINE_RETURN_IF_ERROR(BOWLINE_CUBLASLT(*blas_.api, cublasLtCreate, &blas_.handle));
  }
  return blas_;
}

absl::StatusOr<CUmodule> LoadModule(const CudaApi& api, const void* image, absl::string_view what) {
  std::array<char, 4096> log = {};
  std::array<CUjit_option, 2> options = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  CUmodule module = nullptr;
  const absl::Status status = BOWLINE_CUDA(api, cuModuleLoadDataEx, &module, image,
                                           static_cast<unsigned>(options.size()), options.data(), values.data());
  if (status.ok()) return module;
  const std::string said(log.data(), ::strnlen(log.data(), log.size()));
  return absl::InvalidArgumentError(
      absl::StrCat(what, " cannot be loaded: ", status.message(), said.empty() ? "" : "; the loader says: ", said));
}

absl::StatusOr<CUfunction> FindFunction(const CudaApi& api, CUmodule module, const std::string& name) {
  CUfunction function = nullptr;
  const CUresult result = api.cuModuleGetFunction(&function, module, name.c_str());
  if (result == CUDA_ERROR_NOT_FOUND)
    return absl::NotFoundError(absl::StrCat("the image has no function '", name, "'"));
  BOWLINE_RETURN_IF_ERROR(CudaStatus(api, result, absl::StrCat("cuModuleGetFunction of '", name, "'")));
  // A launch that loads code waits for other streams.
  BOWLINE_RETURN_IF_ERROR(CudaStatus(api, api.cuFuncLoad(function), absl::StrCat("cuFuncLoad of '", name, "'")));
  return function;
}

absl::StatusOr<std::vector<size_t>> ParameterBytes(const CudaApi& api, CUfunction function) {
  std::vector<size_t> all;
  for (;;) {
    size_t offset = 0, bytes = 0;
    const CUresult result = api.cuFuncGetParamInfo(function, all.size(), &offset, &bytes);
    if (result == CUDA_ERROR_INVALID_VALUE) return all;  // there are no more
    BOWLINE_RETURN_IF_ERROR(CudaStatus(api, result, "cuFuncGetParamInfo"));
    all.push_back(bytes);
  }
}

}  // namespace bowline
