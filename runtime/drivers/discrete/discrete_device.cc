#include "runtime/drivers/discrete/discrete_device.h"

#include <atomic>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/drivers/cpu/cpu_device.h"
#include "runtime/drivers/discrete/discrete_communicator.h"
#include "runtime/drivers/discrete/discrete_kernels.h"
#include "runtime/drivers/discrete/discrete_launchable.h"
#include "runtime/drivers/discrete/discrete_memory.h"
#include "runtime/drivers/discrete/discrete_stream.h"
#include "runtime/drivers/discrete/grid_kernels.h"
#include "runtime/drivers/host/host_event.h"
#include "runtime/drivers/host/worker_stream.h"
#include "runtime/hal/driver_registry.h"

namespace bowline {
namespace {

constexpr uint64_t kDefaultWait = 200, kLongestWait = 10'000'000;  // microseconds

absl::StatusOr<std::optional<uint64_t>> ReadSetting(const hal::DeviceOptions& options, const std::string& key,
                                                    uint64_t most) {
  const auto found = options.settings.find(key);
  if (found == options.settings.end()) return std::nullopt;
  uint64_t value = 0;
  if (absl::SimpleAtoi(found->second, &value) && value <= most) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("the driver 'discrete': ", key, "=", found->second, " is not a whole number from 0 to ", most));
}

class DiscreteDevice : public hal::Device {
 public:
  DiscreteDevice(std::unique_ptr<hal::Device> cpu, std::optional<uint64_t> seed, int rank,
                 std::chrono::microseconds longest_wait)
      : cpu_(std::move(cpu)),
        // Ranks wait apart from each other.
        seed_(seed.has_value() ? std::optional(*seed + 0x9e3779b97f4a7c15 * static_cast<uint64_t>(rank)) : seed),
        who_waits_(static_cast<WhoWaits>(seed.value_or(0) % 3)),
        longest_wait_(longest_wait) {}

  absl::string_view name() const override { return "discrete"; }

  absl::Status CheckTarget(const hal::Target& target) const override {
    hal::Target of_cpu = target;
    if (target.device == name()) of_cpu.device = "cpu";
    return cpu_->CheckTarget(of_cpu);
  }

  absl::StatusOr<std::unique_ptr<hal::Allocation>> Allocate(size_t bytes, hal::MemorySpace space) override {
    return memory_.Allocate(bytes, space);
  }

  bool KnowsFormat(absl::string_view format) const override { return cpu_->KnowsFormat(format); }
  absl::StatusOr<std::unique_ptr<hal::Executable>> LoadExecutable(absl::string_view format,
                                                                  absl::Span<const uint8_t> image) override {
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Executable> of_cpu, cpu_->LoadExecutable(format, image));
    return std::make_unique<DiscreteExecutable>(std::move(of_cpu));
  }

  absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateKernel(const kernels::Signature& signature) override {
    absl::StatusOr<std::unique_ptr<hal::Launchable>> own = CreateDiscreteKernel(signature);
    if (absl::IsNotFound(own.status())) own = CreateGridKernel(signature);
    if (!absl::IsNotFound(own.status())) return own;
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Launchable> of_cpu, cpu_->CreateKernel(signature));
    std::optional<size_t> given;
    if (signature.scratch_limit != std::numeric_limits<size_t>::max()) given = signature.scratch_limit;
    return std::make_unique<HostKernel>(std::move(of_cpu), given);
  }

  absl::StatusOr<std::unique_ptr<hal::Stream>> CreateStream(hal::StreamMode) override {
    const uint32_t number = streams_++;
    GridWorkspace workspace;
    if (!seed_.has_value()) {
      Waits none(WaitMode::kNone, 0, longest_wait_, 0);
      return WorkerStream::Create(std::make_unique<DiscreteRunner>(&memory_, std::move(none), std::move(workspace)));
    }
    std::seed_seq sequence = {*seed_, *seed_ >> 32, uint64_t{number}};
    uint32_t seeds[5];
    sequence.generate(std::begin(seeds), std::end(seeds));
    Waits waits(WaitsOf(number), uint64_t{seeds[0]} << 32 | seeds[1], longest_wait_, seeds[4]);
    workspace.Seed(uint64_t{seeds[2]} << 32 | seeds[3]);
    return WorkerStream::Create(std::make_unique<DiscreteRunner>(&memory_, std::move(waits), std::move(workspace)));
  }

  absl::StatusOr<std::unique_ptr<hal::Event>> CreateEvent(hal::EventMode mode) override {
    return std::make_unique<HostEvent>(mode);
  }

  absl::StatusOr<std::unique_ptr<hal::Communicator>> CreateCommunicator(
      std::unique_ptr<hal::Exchange> exchange) override {
    std::optional<uint64_t> seed;
    if (seed_.has_value() && who_waits_ == WhoWaits::kOthersLate) seed = *seed_ + ++communicators_;
    return std::make_unique<DiscreteCommunicator>(this, std::move(exchange), seed);
  }

 private:
  // The streams that wait, chosen by the seed modulo 3.
  enum class WhoWaits : uint8_t { kAllAtRandom, kFirstLate, kOthersLate };

  WaitMode WaitsOf(uint32_t stream) const {
    if (who_waits_ == WhoWaits::kAllAtRandom) return WaitMode::kRandom;
    return (stream == 0) == (who_waits_ == WhoWaits::kFirstLate) ? WaitMode::kLate : WaitMode::kNone;
  }

  std::unique_ptr<hal::Device> cpu_;  // the device whose code this one runs
  DiscreteMemory memory_;
  const std::optional<uint64_t> seed_;
  const WhoWaits who_waits_;
  const std::chrono::microseconds longest_wait_;
  std::atomic<uint32_t> streams_{0}, communicators_{0};
};

}  // namespace

absl::StatusOr<std::unique_ptr<hal::Device>> CreateDiscreteDevice(const hal::DeviceOptions& options) {
  BOWLINE_RETURN_IF_ERROR(hal::CheckSettings("discrete", options, {"seed", "wait_us"}));
  BOWLINE_ASSIGN_OR_RETURN(std::optional<uint64_t> seed, ReadSetting(options, "seed", UINT64_MAX));
  BOWLINE_ASSIGN_OR_RETURN(const std::optional<uint64_t> wait, ReadSetting(options, "wait_us", kLongestWait));
  if (wait.has_value() && !seed.has_value()) {
    return absl::InvalidArgumentError(
        "the driver 'discrete': wait_us is the longest wait of a run with a seed; give both");
  }
  hal::DeviceOptions of_cpu = options;
  of_cpu.settings.clear();
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Device> cpu, CreateCpuDevice(of_cpu));
  return std::make_unique<DiscreteDevice>(std::move(cpu), seed, options.rank,
                                          std::chrono::microseconds(wait.value_or(kDefaultWait)));
}

}  // namespace bowline
