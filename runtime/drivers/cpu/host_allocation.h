#ifndef BOWLINE_RUNTIME_DRIVERS_CPU_HOST_ALLOCATION_H_
#define BOWLINE_RUNTIME_DRIVERS_CPU_HOST_ALLOCATION_H_

#include <memory>

#include "runtime/hal/allocation.h"

namespace bowline {

// Host memory from mmap: zeroed by the system, so pages that are never touched cost nothing. It starts at a multiple of
// 2 MiB and asks for huge pages; the page after its last is inaccessible, so that a kernel that runs past the end stops
// there instead of in somebody else's memory.
class HostAllocation : public hal::Allocation {
 public:
  static absl::StatusOr<std::unique_ptr<hal::Allocation>> Create(size_t bytes);

  ~HostAllocation() override;
  HostAllocation(const HostAllocation&) = delete;
  HostAllocation& operator=(const HostAllocation&) = delete;

  size_t bytes() const override { return bytes_; }
  uint8_t* address() const override { return address_; }
  bool host_visible() const override { return true; }
  absl::Status Write(size_t offset, absl::Span<const uint8_t> from) override;
  absl::Status Read(size_t offset, absl::Span<uint8_t> to) const override;

 private:
  HostAllocation(void* mapping, size_t mapped, uint8_t* address, size_t bytes)
      : mapping_(mapping), mapped_(mapped), address_(address), bytes_(bytes) {}

  void* mapping_;
  size_t mapped_;
  uint8_t* address_;
  size_t bytes_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CPU_HOST_ALLOCATION_H_
