#include "runtime/drivers/discrete/discrete_device.h"

#include <atomic>
#include <iterator>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/drivers/cpu/cpu_device.h"
#include "runtime/drivers/discrete/arrival_exchange.h"
#include "runtime/drivers/discrete/discrete_communicator.h"
#include "runtime/drivers/discrete/discrete_kernels.h"
#include "runtime/drivers/discrete/discrete_launchable.h"
#include "runtime/drivers/discrete/discrete_memory.h"
#include "runtime/drivers/discrete/discrete_scheduler.h"
#include "runtime/drivers/discrete/discrete_stream.h"
#include "runtime/drivers/discrete/grid_kernels.h"
#include "runtime/hal/driver_registry.h"

namespace bowline {
namespace {

absl::StatusOr<uint64_t> ReadSeed(const hal::DeviceOptions& options) {
  const auto found = options.settings.find("seed");
  uint64_t value = 0;
  if (found == options.settings.end() || absl::SimpleAtoi(found->second, &value)) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("the driver 'discrete': seed=", found->second, " is not a whole number from 0 to ", UINT64_MAX));
}

class DiscreteDevice : public hal::Device {
 public:
  DiscreteDevice(std::unique_ptr<hal::Device> cpu, uint64_t seed, int rank)
      : cpu_(std::move(cpu)),
        // Ranks draw apart from each other.
        seed_(seed + 0x9e3779b97f4a7c15 * static_cast<uint64_t>(rank)),
        who_is_late_(static_cast<WhoIsLate>(seed % 3)) {}

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
    std::seed_seq sequence = {seed_, seed_ >> 32, uint64_t{number}};
    uint32_t seeds[5];
    sequence.generate(std::begin(seeds), std::end(seeds));
    const Draws draws(uint64_t{seeds[0]} << 32 | seeds[1], IsLate(number), /*turn=*/seeds[4]);
    return DiscreteStream::Create(&scheduler_, &memory_, draws, uint64_t{seeds[2]} << 32 | seeds[3]);
  }

  absl::StatusOr<std::unique_ptr<hal::Event>> CreateEvent(hal::EventMode mode) override {
    return std::make_unique<DiscreteEvent>(&scheduler_, mode);
  }

  absl::StatusOr<std::unique_ptr<hal::Communicator>> CreateCommunicator(
      std::unique_ptr<hal::Exchange> exchange) override {
    std::optional<uint64_t> seed;
    if (who_is_late_ == WhoIsLate::kOthers) seed = seed_ + ++communicators_;
    return std::make_unique<DiscreteCommunicator>(this, std::make_unique<ArrivalExchange>(std::move(exchange)), seed);
  }

 private:
  // The streams that are late, chosen by the seed modulo 3.
  enum class WhoIsLate : uint8_t { kNobody, kFirst, kOthers };

  bool IsLate(uint32_t stream) const {
    return who_is_late_ != WhoIsLate::kNobody && (stream == 0) == (who_is_late_ == WhoIsLate::kFirst);
  }

  std::unique_ptr<hal::Device> cpu_;  // the device whose code this one runs
  DiscreteMemory memory_;
  DiscreteScheduler scheduler_;
  const uint64_t seed_;
  const WhoIsLate who_is_late_;
  std::atomic<uint32_t> streams_{0}, communicators_{0};
};

}  // namespace

absl::StatusOr<std::unique_ptr<hal::Device>> CreateDiscreteDevice(const hal::DeviceOptions& options) {
  BOWLINE_RETURN_IF_ERROR(hal::CheckSettings("discrete", options, {"seed"}));
  BOWLINE_ASSIGN_OR_RETURN(const uint64_t seed, ReadSeed(options));
  hal::DeviceOptions of_cpu = options;
  of_cpu.settings.clear();
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Device> cpu, CreateCpuDevice(of_cpu));
  return std::make_unique<DiscreteDevice>(std::move(cpu), seed, options.rank);
}

}  // namespace bowline
