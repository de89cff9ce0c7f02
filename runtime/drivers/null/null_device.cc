#include "runtime/drivers/null/null_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

// Address space without memory behind it until it is written: a plan of any size fits.
class NullAllocation : public hal::Allocation {
 public:
  NullAllocation(uint8_t* address, size_t bytes) : address_(address), bytes_(bytes) {}
  ~NullAllocation() override { ::munmap(address_, MappedBytes(bytes_)); }

  static size_t MappedBytes(size_t bytes) { return std::max<size_t>(bytes, 1); }

  size_t bytes() const override { return bytes_; }
  uint8_t* address() const override { return address_; }
  bool host_visible() const override { return true; }

  absl::Status Write(size_t offset, absl::Span<const uint8_t> from) override {
    BOWLINE_RETURN_IF_ERROR(CheckRange(offset, from.size()));
    std::copy(from.begin(), from.end(), address_ + offset);
    return absl::OkStatus();
  }
  absl::Status Read(size_t offset, absl::Span<uint8_t> to) const override {
    BOWLINE_RETURN_IF_ERROR(CheckRange(offset, to.size()));
    std::copy_n(address_ + offset, to.size(), to.begin());
    return absl::OkStatus();
  }

 private:
  absl::Status CheckRange(size_t offset, size_t size) const {
    if (offset <= bytes_ && size <= bytes_ - offset) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(size, " bytes at offset ", offset, " reach beyond an allocation of ", bytes_, " bytes"));
  }

  uint8_t* address_;
  size_t bytes_;
};

class NullLaunchable : public hal::Launchable {};

class NullExecutable : public hal::Executable {
 public:
  absl::StatusOr<std::unique_ptr<hal::Launchable>> Resolve(const std::string&, int64_t, hal::Work) const override {
    return std::make_unique<NullLaunchable>();
  }
  absl::StatusOr<const void*> ResolveFunction(const std::string&) const override { return nullptr; }
};

class NullEvent : public hal::Event {
 public:
  bool recorded() const override { return recorded_; }
  void set_recorded() { recorded_ = true; }

 private:
  bool recorded_ = false;
};

struct Counters {
  std::atomic<uint64_t> launches{0}, copies{0}, copied_bytes{0}, calls{0}, records{0}, waits{0}, synchronizations{0};
};

class NullStream : public hal::Stream {
 public:
  explicit NullStream(Counters* counters) : counters_(counters) {}

  absl::Status Launch(const hal::Launchable&, absl::Span<void* const>, void*) override {
    ++counters_->launches;
    return absl::OkStatus();
  }
  absl::Status Copy(void*, const void*, size_t bytes) override {
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
    static_cast<NullEvent&>(event).set_recorded();
    return absl::OkStatus();
  }
  absl::Status Wait(const hal::Event& event) override {
    ++counters_->waits;
    if (event.recorded()) return absl::OkStatus();
    return absl::FailedPreconditionError("a stream waits for an event that no stream recorded");
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

  absl::StatusOr<std::unique_ptr<hal::Allocation>> Allocate(size_t bytes) override {
    void* address = ::mmap(nullptr, NullAllocation::MappedBytes(bytes), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot reserve ", bytes, " bytes of address space: ", std::strerror(errno)));
    }
    return std::make_unique<NullAllocation>(static_cast<uint8_t*>(address), bytes);
  }

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
  absl::StatusOr<std::unique_ptr<hal::Event>> CreateEvent() override { return std::make_unique<NullEvent>(); }

  const Counters& counters() const { return counters_; }

 private:
  Counters counters_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<hal::Device>> CreateNullDevice(const hal::DeviceOptions&) {
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
