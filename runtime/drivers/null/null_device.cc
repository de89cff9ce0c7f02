#include "runtime/drivers/null/null_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/drivers/host/host_communicator.h"
#include "runtime/drivers/host/host_event.h"
#include "runtime/drivers/host/host_memory.h"
#include "runtime/hal/driver_registry.h"

namespace bowline {
namespace {

// Address space without memory behind it until it is written: a plan of any size fits.
class NullAllocation : public hal::Allocation {
 public:
  NullAllocation(uint8_t* data, size_t bytes, hal::MemorySpace space) : data_(data), bytes_(bytes), space_(space) {}
  ~NullAllocation() override { ::munmap(data_, MappedBytes(bytes_)); }

  static size_t MappedBytes(size_t bytes) { return std::max<size_t>(bytes, 1); }

  size_t bytes() const override { return bytes_; }
  hal::DeviceAddress address() const override { return AddressOf(data_); }
  uint8_t* host() const override { return space_ == hal::MemorySpace::kPinnedHost ? data_ : nullptr; }

  absl::Status Write(size_t offset, absl::Span<const uint8_t> from) override {
    BOWLINE_RETURN_IF_ERROR(hal::CheckTransfer(offset, from.size(), bytes_));
    std::copy(from.begin(), from.end(), data_ + offset);
    return absl::OkStatus();
  }
  absl::Status Read(size_t offset, absl::Span<uint8_t> to) const override {
    BOWLINE_RETURN_IF_ERROR(hal::CheckTransfer(offset, to.size(), bytes_));
    std::copy_n(data_ + offset, to.size(), to.begin());
    return absl::OkStatus();
  }

 private:
  uint8_t* data_;
  size_t bytes_;
  hal::MemorySpace space_;
};

class NullLaunchable : public hal::Launchable {
 public:
  absl::Status CheckGeometry(const hal::Geometry&) const override { return absl::OkStatus(); }
};

class NullExecutable : public hal::Executable {
 public:
  absl::StatusOr<std::unique_ptr<hal::Launchable>> Resolve(const std::string&, hal::Work) const override {
    return std::make_unique<NullLaunchable>();
  }
  absl::StatusOr<const void*> ResolveFunction(const std::string&) const override { return nullptr; }
};

struct Counters {
  std::atomic<uint64_t> launches{0}, copies{0}, copied_bytes{0}, calls{0}, records{0}, waits{0}, synchronizations{0};
};

class NullStream : public hal::Stream {
 public:
  explicit NullStream(Counters* counters) : counters_(counters) {}

  absl::Status Launch(const hal::Launchable&, const hal::Geometry&, absl::Span<const hal::DeviceAddress>,
                      hal::DeviceAddress) override {
    ++counters_->launches;
    return absl::OkStatus();
  }
  absl::Status Copy(hal::DeviceAddress, hal::DeviceAddress, size_t bytes) override {
    ++counters_->copies;
    counters_->copied_bytes += bytes;
    return absl::OkStatus();
  }
  absl::Status Call(const hal::HostCall&) override {
    ++counters_->calls;
    return absl::OkStatus();
  }
  absl::Status Record(hal::Event& event) override {
    ++counters_->records;
    auto& point = static_cast<HostEvent&>(event);
    point.Record(nullptr, 0);
    if (point.timed()) point.Stamp();
    return absl::OkStatus();
  }
  absl::Status Wait(const hal::Event& event) override {
    ++counters_->waits;
    return CheckRecorded(event);
  }
  absl::Status Synchronize() override {
    ++counters_->synchronizations;
    return absl::OkStatus();
  }

 private:
  Counters* counters_;
};

class NullDevice : public hal::Device {
 public:
  absl::string_view name() const override { return "null"; }
  absl::Status CheckTarget(const hal::Target&) const override { return absl::OkStatus(); }

  absl::StatusOr<std::unique_ptr<hal::Allocation>> Allocate(size_t bytes, hal::MemorySpace space) override {
    void* address = ::mmap(nullptr, NullAllocation::MappedBytes(bytes), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot reserve ", bytes, " bytes of address space: ", std::strerror(errno)));
    }
    return std::make_unique<NullAllocation>(static_cast<uint8_t*>(address), bytes, space);
  }

  bool KnowsFormat(absl::string_view) const override { return true; }
  absl::StatusOr<std::unique_ptr<hal::Executable>> LoadExecutable(absl::string_view,
                                                                  absl::Span<const uint8_t>) override {
    return std::make_unique<NullExecutable>();
  }
  absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateKernel(const kernels::Signature&) override {
    return std::make_unique<NullLaunchable>();
  }
  absl::StatusOr<std::unique_ptr<hal::Stream>> CreateStream(hal::StreamMode) override {
    return std::make_unique<NullStream>(&counters_);
  }
  absl::StatusOr<std::unique_ptr<hal::Event>> CreateEvent(hal::EventMode mode) override {
    return std::make_unique<HostEvent>(mode);
  }
  absl::StatusOr<std::unique_ptr<hal::Communicator>> CreateCommunicator(
      std::unique_ptr<hal::Exchange> exchange) override {
    return std::make_unique<HostCommunicator>(std::move(exchange));
  }

  const Counters& counters() const { return counters_; }

 private:
  Counters counters_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<hal::Device>> CreateNullDevice(const hal::DeviceOptions& options) {
  BOWLINE_RETURN_IF_ERROR(hal::CheckSettings("null", options, {}));
  return std::make_unique<NullDevice>();
}

NullCounts CountsOf(const hal::Device& device) {
  const Counters& counters = static_cast<const NullDevice&>(device).counters();
  NullCounts counts;
  counts.launches = counters.launches;
  counts.copies = counters.copies;
  counts.copied_bytes = counters.copied_bytes;
  counts.calls = counters.calls;
  counts.records = counters.records;
  counts.waits = counters.waits;
  counts.synchronizations = counters.synchronizations;
  return counts;
}

}  // namespace bowline
