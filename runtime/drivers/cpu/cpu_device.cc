#include "runtime/drivers/cpu/cpu_device.h"

#include <sys/utsname.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/parallel/parallel.h"
#include "runtime/drivers/cpu/cpu_executable.h"
#include "runtime/drivers/cpu/cpu_launchable.h"
#include "runtime/drivers/cpu/cpu_stream.h"
#include "runtime/drivers/host/host_allocation.h"
#include "runtime/drivers/host/host_communicator.h"
#include "runtime/drivers/host/host_event.h"
#include "runtime/drivers/host/host_memory.h"
#include "runtime/drivers/host/worker_stream.h"
#include "runtime/hal/driver_registry.h"

namespace bowline {
namespace {

class RegisteredLaunchable : public CpuLaunchable {
 public:
  explicit RegisteredLaunchable(std::unique_ptr<kernels::Kernel> kernel) : kernel_(std::move(kernel)) {}

  size_t ScratchBytes() const override { return kernel_->ScratchBytes(); }
  absl::Status CheckGeometry(const hal::Geometry& geometry) const override {
    if (std::holds_alternative<std::monostate>(geometry)) return absl::OkStatus();
    return absl::InvalidArgumentError("a kernel of the registry divides its work itself and takes no geometry");
  }
  void Run(const hal::Geometry&, absl::Span<void* const> arguments, void* scratch) const override {
    kernel_->Run(arguments, scratch);
  }

 private:
  std::unique_ptr<kernels::Kernel> kernel_;
};

class CpuDevice : public hal::Device {
 public:
  CpuDevice(int threads, CpuFeatures cpu) : threads_(threads), cpu_(std::move(cpu)) {}

  absl::string_view name() const override { return "cpu"; }

  absl::Status CheckTarget(const hal::Target& target) const override {
    if (target.device != "cpu") return Refuse("device", target.device, "cpu");
    if (target.arch != HostArch()) return Refuse("architecture", target.arch, HostArch());
    if (!cpu_.Runs(target.cpu)) return Refuse("CPU", target.cpu, cpu_.NameBeside(target.cpu), cpu_.is_limited);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<hal::Allocation>> Allocate(size_t bytes, hal::MemorySpace space) override {
    return HostAllocation::Create(bytes, space);
  }

  std::optional<hal::DeviceAddress> AddressOfHost(absl::Span<const uint8_t> memory) const override {
    return AddressOf(memory.data());
  }

  bool KnowsFormat(absl::string_view format) const override { return format == "elf"; }
  absl::StatusOr<std::unique_ptr<hal::Executable>> LoadExecutable(absl::string_view format,
                                                                  absl::Span<const uint8_t> image) override {
    if (KnowsFormat(format)) return CpuExecutable::Load(image, threads_);
    return absl::InvalidArgumentError(
        absl::StrCat("the cpu driver cannot load images of format '", format, "', only 'elf'"));
  }

  absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateKernel(const kernels::Signature& signature) override {
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<kernels::Kernel> kernel, kernels::CreateKernel(signature));
    return std::make_unique<RegisteredLaunchable>(std::move(kernel));
  }

  bool ComputesInCalls() const override { return true; }
  absl::StatusOr<std::unique_ptr<hal::Stream>> CreateStream(hal::StreamMode mode) override {
    if (mode == hal::StreamMode::kWorker) return WorkerStream::Create(std::make_unique<CpuRunner>());
    return std::make_unique<CpuStream>();
  }
  absl::StatusOr<std::unique_ptr<hal::Event>> CreateEvent(hal::EventMode mode) override {
    return std::make_unique<HostEvent>(mode);
  }
  absl::StatusOr<std::unique_ptr<hal::Communicator>> CreateCommunicator(
      std::unique_ptr<hal::Exchange> exchange) override {
    return std::make_unique<HostCommunicator>(std::move(exchange));
  }

 private:
  static absl::Status Refuse(absl::string_view what, absl::string_view needed, absl::string_view present,
                             bool is_limited = false) {
    const std::string limit = is_limited ? absl::StrCat(" by the environment's ", kCpuLimitVariable) : "",
                      remedy = is_limited ? absl::StrCat(", or unset ", kCpuLimitVariable) : "";
    return absl::FailedPreconditionError(absl::StrCat("the plan was compiled for ", what, " '", needed,
                                                      "', but this machine is '", present, "'", limit,
                                                      "; compile the model again for this machine", remedy));
  }

  int threads_;
  CpuFeatures cpu_;
};

}  // namespace

std::string HostArch() {
  struct utsname system;
  return ::uname(&system) == 0 ? system.machine : "unknown";
}

absl::StatusOr<std::unique_ptr<hal::Device>> CreateCpuDevice(const hal::DeviceOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(const CpuFeatures cpu, HostCpuFeatures());
  return CreateCpuDeviceAs(options, cpu);
}

absl::StatusOr<std::unique_ptr<hal::Device>> CreateCpuDeviceAs(const hal::DeviceOptions& options,
                                                               const CpuFeatures& cpu) {
  if (options.threads < 1) {
    return absl::InvalidArgumentError(absl::StrCat(options.threads, " threads; it must be at least 1"));
  }
  BOWLINE_RETURN_IF_ERROR(hal::CheckSettings("cpu", options, {"teams"}));
  if (const auto teams = options.settings.find("teams"); teams != options.settings.end()) {
    if (teams->second != "whole") {
      return absl::InvalidArgumentError(absl::StrCat("the driver 'cpu': teams=", teams->second,
                                                     " is not 'whole'; leave it out for teams that shrink"));
    }
    kernels::KeepTeamsWhole();
  }
  return std::make_unique<CpuDevice>(options.threads, cpu);
}

}  // namespace bowline
