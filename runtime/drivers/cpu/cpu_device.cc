#include "runtime/drivers/cpu/cpu_device.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "runtime/drivers/cpu/cpu_executable.h"
#include "runtime/drivers/cpu/cpu_launchable.h"
#include "runtime/drivers/cpu/cpu_stream.h"
#include "runtime/drivers/cpu/host_allocation.h"

namespace bowline {
namespace {

constexpr std::array<absl::string_view, 4> kLevels = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

// Index into kLevels.
size_t HostLevel() {
#if defined(__x86_64__)
  // Features, because not every compiler's builtin knows the levels' names; those that come together with a named one
  // (lahf-sahf, movbe, osxsave) are implied by it.
  const bool v2 = __builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") &&
                  __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
                  __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? 3 : v3 ? 2 : v2 ? 1 : 0;
#else
  return 0;
#endif
}

class RegisteredLaunchable : public CpuLaunchable {
 public:
  explicit RegisteredLaunchable(std::unique_ptr<kernels::Kernel> kernel) : kernel_(std::move(kernel)) {}

  size_t ScratchBytes() const override { return kernel_->ScratchBytes(); }
  void Run(absl::Span<void* const> arguments, void* scratch) const override { kernel_->Run(arguments, scratch); }

 private:
  std::unique_ptr<kernels::Kernel> kernel_;
};

class CpuDevice : public hal::Device {
 public:
  explicit CpuDevice(int threads) : threads_(threads) {}

  absl::string_view name() const override { return "cpu"; }

  absl::Status CheckTarget(const hal::Target& target) const override {
    if (target.device != "cpu") return Refuse("device", target.device, "cpu");
    if (target.arch != HostArch()) return Refuse("architecture", target.arch, HostArch());
    const auto needed = std::find(kLevels.begin(), kLevels.end(), target.cpu);
    if (needed == kLevels.end() || static_cast<size_t>(needed - kLevels.begin()) > HostLevel()) {
      return Refuse("CPU", target.cpu, HostCpuLevel());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<hal::Allocation>> Allocate(size_t bytes) override {
    return HostAllocation::Create(bytes);
  }

  absl::StatusOr<std::unique_ptr<hal::Executable>> LoadExecutable(absl::string_view format,
                                                                  absl::Span<const uint8_t> image) override {
    if (format == "elf") return CpuExecutable::Load(image, threads_);
    return absl::InvalidArgumentError(
        absl::StrCat("the cpu driver cannot load images of format '", format, "', only 'elf'"));
  }

  absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateKernel(const kernels::Signature& signature) override {
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<kernels::Kernel> kernel, kernels::CreateKernel(signature));
    return std::make_unique<RegisteredLaunchable>(std::move(kernel));
  }

  absl::StatusOr<std::unique_ptr<hal::Stream>> CreateStream() override { return std::make_unique<CpuStream>(); }
  absl::StatusOr<std::unique_ptr<hal::Event>> CreateEvent() override { return std::make_unique<CpuEvent>(); }

 private:
  static absl::Status Refuse(absl::string_view what, absl::string_view needed, absl::string_view present) {
    return absl::FailedPreconditionError(absl::StrCat("the plan was compiled for ", what, " '", needed,
                                                      "', but this machine is '", present,
                                                      "'; compile the model again for this machine"));
  }

  int threads_;
};

}  // namespace

std::string HostArch() {
  struct utsname system;
  return ::uname(&system) == 0 ? system.machine : "unknown";
}

std::string HostCpuLevel() {
  const std::string arch = HostArch();
  return arch == "x86_64" ? std::string(kLevels[HostLevel()]) : arch;
}

absl::StatusOr<std::unique_ptr<hal::Device>> CreateCpuDevice(const hal::DeviceOptions& options) {
  if (options.threads < 1) {
    return absl::InvalidArgumentError(absl::StrCat(options.threads, " threads; it must be at least 1"));
  }
  return std::make_unique<CpuDevice>(options.threads);
}

}  // namespace bowline
