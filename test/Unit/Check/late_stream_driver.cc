// The CPU, with streams that break their contract: all but the first run their commands only when they are
// synchronised, and no stream waits for an event.

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/drivers/cpu/cpu_device.h"
#include "runtime/hal/driver_plugin.h"

namespace bowline {
namespace {

class LateStream : public hal::Stream {
 public:
  LateStream(std::unique_ptr<hal::Stream> stream, bool is_late) : stream_(std::move(stream)), is_late_(is_late) {}

  absl::Status Launch(const hal::Launchable& launchable, const hal::Geometry& geometry,
                      absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch) override {
    return Do([this, &launchable, &geometry, arguments, scratch] {
      return stream_->Launch(launchable, geometry, arguments, scratch);
    });
  }
  absl::Status Copy(hal::DeviceAddress destination, hal::DeviceAddress source, size_t bytes) override {
    return Do([this, destination, source, bytes] { return stream_->Copy(destination, source, bytes); });
  }
  absl::Status Call(const hal::HostCall& call) override {
    return Do([this, call] { return stream_->Call(call); });
  }
  absl::Status Record(hal::Event& event) override { return stream_->Record(event); }
  absl::Status Wait(const hal::Event&) override { return absl::OkStatus(); }
  absl::Status Synchronize() override {
    for (const auto& command : std::exchange(late_, {})) BOWLINE_RETURN_IF_ERROR(command());
    return stream_->Synchronize();
  }

 private:
  absl::Status Do(std::function<absl::Status()> command) {
    if (!is_late_) return command();
    late_.push_back(std::move(command));
    return absl::OkStatus();
  }

  const std::unique_ptr<hal::Stream> stream_;
  const bool is_late_;
  std::vector<std::function<absl::Status()>> late_;
};

class LateDevice : public hal::Device {
 public:
  explicit LateDevice(std::unique_ptr<hal::Device> cpu) : cpu_(std::move(cpu)) {}

  absl::string_view name() const override { return "late_stream"; }
  absl::Status CheckTarget(const hal::Target& target) const override { return cpu_->CheckTarget(target); }
  absl::StatusOr<std::unique_ptr<hal::Allocation>> Allocate(size_t bytes, hal::MemorySpace space) override {
    return cpu_->Allocate(bytes, space);
  }
  bool KnowsFormat(absl::string_view format) const override { return cpu_->KnowsFormat(format); }
  absl::StatusOr<std::unique_ptr<hal::Executable>> LoadExecutable(absl::string_view format,
                                                                  absl::Span<const uint8_t> image) override {
    return cpu_->LoadExecutable(format, image);
  }
  absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateKernel(const kernels::Signature& signature) override {
    return cpu_->CreateKernel(signature);
  }
  absl::StatusOr<std::unique_ptr<hal::Stream>> CreateStream(hal::StreamMode mode) override {
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Stream> stream, cpu_->CreateStream(mode));
    return std::make_unique<LateStream>(std::move(stream), streams_++ > 0);
  }
  absl::StatusOr<std::unique_ptr<hal::Event>> CreateEvent(hal::EventMode mode) override {
    return cpu_->CreateEvent(mode);
  }
  absl::StatusOr<std::unique_ptr<hal::Communicator>> CreateCommunicator(
      std::unique_ptr<hal::Exchange> exchange) override {
    return cpu_->CreateCommunicator(std::move(exchange));
  }

 private:
  const std::unique_ptr<hal::Device> cpu_;
  int streams_ = 0;
};

absl::StatusOr<std::unique_ptr<hal::Device>> CreateLateDevice(const hal::DeviceOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Device> cpu, CreateCpuDevice(options));
  return std::make_unique<LateDevice>(std::move(cpu));
}

}  // namespace
}  // namespace bowline

BOWLINE_DRIVER_PLUGIN(bowline::CreateLateDevice)
