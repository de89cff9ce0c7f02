#include "runtime/drivers/cuda/cuda_device.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/drivers/cuda/card/cuda_capture.h"
#include "runtime/drivers/cuda/card/cuda_card.h"
#include "runtime/drivers/cuda/card/cuda_event.h"
#include "runtime/drivers/cuda/card/cuda_memory.h"
#include "runtime/drivers/cuda/card/cuda_stream.h"
#include "runtime/drivers/cuda/cuda_executable.h"
#include "runtime/drivers/cuda/cuda_kernels.h"
#include "runtime/drivers/cuda/cuda_target.h"
#include "runtime/drivers/cuda/nccl/communicators.h"
#include "runtime/hal/driver_registry.h"

namespace bowline {
namespace {

constexpr uint64_t kMostCards = 1023;

absl::StatusOr<std::optional<uint64_t>> ReadNumber(const hal::DeviceOptions& options, const std::string& key,
                                                   uint64_t most) {
  const auto found = options.settings.find(key);
  if (found == options.settings.end()) return std::nullopt;
  uint64_t value = 0;
  if (absl::SimpleAtoi(found->second, &value) && value <= most) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("the driver 'cuda': ", key, "=", found->second, " is not a whole number from 0 to ", most));
}

absl::StatusOr<bool> ReadFlag(const hal::DeviceOptions& options, const std::string& key) {
  BOWLINE_ASSIGN_OR_RETURN(const std::optional<uint64_t> value, ReadNumber(options, key, 1));
  return value.value_or(0) == 1;
}

absl::StatusOr<CommunicatorWay> ReadWay(const hal::DeviceOptions& options) {
  const auto found = options.settings.find("communicators");
  if (found == options.settings.end() || found->second == "auto") return CommunicatorWay::kAuto;
  if (found->second == "nccl") return CommunicatorWay::kNccl;
  if (found->second == "host") return CommunicatorWay::kHost;
  return absl::InvalidArgumentError(
      absl::StrCat("the driver 'cuda': communicators=", found->second, " is none of auto, nccl and host"));
}

// Whether cuDNN computes attention. `auto` takes what ran on a card.
absl::StatusOr<bool> ReadAttention(const hal::DeviceOptions& options) {
  const auto found = options.settings.find("attention");
  if (found == options.settings.end() || found->second == "auto" || found->second == "own") return false;
  if (found->second == "cudnn") return true;
  return absl::InvalidArgumentError(
      absl::StrCat("the driver 'cuda': attention=", found->second, " is none of auto, cudnn and own"));
}

// Whether functions of the driver compute all epilogues of products, and not only those that cuBLASLt lacks.
absl::StatusOr<bool> ReadEpilogues(const hal::DeviceOptions& options) {
  const auto found = options.settings.find("epilogues");
  if (found == options.settings.end() || found->second == "auto") return false;
  if (found->second == "own") return true;
  return absl::InvalidArgumentError(
      absl::StrCat("the driver 'cuda': epilogues=", found->second, " is neither auto nor own"));
}

class CudaDevice : public hal::Device {
 public:
  CudaDevice(CudaCard* card, std::unique_ptr<CudaMemory> memory, bool blocking, std::optional<bool> graphs,
             CudaKernelOptions kernels, CommunicatorWay way)
      : card_(card),
        memory_(std::move(memory)),
        blocking_(blocking),
        graphs_(graphs),
        kernels_(std::move(kernels)),
        communicators_(this, card_, memory_.get(), way, kernels_.gemm.libraries) {}

  absl::string_view name() const override { return "cuda"; }

  std::string Description() const override {
    int version = 0;
    card_->api().cuDriverGetVersion(&version);
    return absl::StrCat(card_->name(), " (sm_", card_->major(), card_->minor(), "), CUDA driver ", version / 1000, ".",
                        version % 1000 / 10);
  }

  absl::Status CheckTarget(const hal::Target& target) const override {
    return CheckCudaTarget(target, card_->major(), card_->minor());
  }

  absl::StatusOr<std::unique_ptr<hal::Allocation>> Allocate(size_t bytes, hal::MemorySpace space) override {
    return memory_->Allocate(bytes, space);
  }

  bool KnowsFormat(absl::string_view format) const override { return CudaExecutable::KnowsFormat(format); }
  absl::StatusOr<std::unique_ptr<hal::Executable>> LoadExecutable(absl::string_view format,
                                                                  absl::Span<const uint8_t> image) override {
    return CudaExecutable::Load(card_, format, image);
  }

  absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateKernel(const kernels::Signature& signature) override {
    return CreateCudaKernel(card_, signature, kernels_);
  }

  absl::StatusOr<std::unique_ptr<hal::Stream>> CreateStream(hal::StreamMode mode) override {
    return CudaStream::Create(card_, mode, blocking_);
  }

  absl::StatusOr<std::unique_ptr<hal::Event>> CreateEvent(hal::EventMode mode) override {
    BOWLINE_ASSIGN_OR_RETURN(std::shared_ptr<CudaEventHandle> handle, CudaEventHandle::Create(card_, mode));
    return std::make_unique<CudaEvent>(card_, std::move(handle), mode);
  }

  absl::StatusOr<std::unique_ptr<hal::Communicator>> CreateCommunicator(
      std::unique_ptr<hal::Exchange> exchange) override {
    return communicators_.Create(std::move(exchange));
  }

  // The commands of a graph do not end one by one.
  bool CanRecord() const override { return !blocking_ && graphs_.value_or(!communicators_.by_nccl()); }
  absl::StatusOr<std::unique_ptr<hal::Recording>> Record(absl::Span<hal::Stream* const> streams,
                                                         absl::FunctionRef<absl::Status()> issue) override {
    return CaptureRecording(card_, streams, issue);
  }

 private:
  CudaCard* card_;
  std::unique_ptr<CudaMemory> memory_;
  bool blocking_;
  std::optional<bool> graphs_;  // not given: wherever graphs ran on a card, which is not with NCCL on several
  CudaKernelOptions kernels_;
  CudaCommunicators communicators_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<hal::Device>> CreateCudaDevice(const hal::DeviceOptions& options) {
  BOWLINE_RETURN_IF_ERROR(hal::CheckSettings("cuda", options,
                                             {"any-order", "attention", "blocking", "communicators", "device",
                                              "epilogues", "graphs", "libraries", "poison", "tf32", "tune"}));
  BOWLINE_ASSIGN_OR_RETURN(const std::optional<uint64_t> number, ReadNumber(options, "device", kMostCards));
  BOWLINE_ASSIGN_OR_RETURN(const bool poison, ReadFlag(options, "poison"));
  BOWLINE_ASSIGN_OR_RETURN(const bool blocking, ReadFlag(options, "blocking"));
  BOWLINE_ASSIGN_OR_RETURN(const std::optional<uint64_t> given, ReadNumber(options, "graphs", 1));
  std::optional<bool> graphs;
  if (given.has_value()) graphs = *given == 1;
  BOWLINE_ASSIGN_OR_RETURN(const CommunicatorWay way, ReadWay(options));
  CudaKernelOptions kernels;
  BOWLINE_ASSIGN_OR_RETURN(kernels.attention.by_cudnn, ReadAttention(options));
  BOWLINE_ASSIGN_OR_RETURN(kernels.attention.any_order, ReadFlag(options, "any-order"));
  BOWLINE_ASSIGN_OR_RETURN(kernels.own_epilogues, ReadEpilogues(options));
  BOWLINE_ASSIGN_OR_RETURN(kernels.gemm.tf32, ReadFlag(options, "tf32"));
  BOWLINE_ASSIGN_OR_RETURN(kernels.gemm.tune, ReadFlag(options, "tune"));
  if (const auto found = options.settings.find("libraries"); found != options.settings.end()) {
    kernels.gemm.libraries = absl::StrSplit(found->second, ':', absl::SkipEmpty());
    kernels.attention.libraries = kernels.gemm.libraries;
  }
  BOWLINE_ASSIGN_OR_RETURN(CudaCard* const card, CudaCard::Open(number, options.rank));
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<CudaMemory> memory, CudaMemory::Create(card, poison));
  return std::make_unique<CudaDevice>(card, std::move(memory), blocking, graphs, std::move(kernels), way);
}

}  // namespace bowline
