#include "runtime/drivers/discrete/discrete_memory.h"

#include <cstring>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace bowline {
namespace {

// Bit 63 without those below it that x86-64 and AArch64 demand of an address.
constexpr hal::DeviceAddress kFirst = hal::DeviceAddress{1} << 63;
constexpr int kNumberShift = 40;
constexpr uint64_t kLargest = uint64_t{1} << kNumberShift;
constexpr uint64_t kNumbers = uint64_t{1} << (63 - kNumberShift);

constexpr uint8_t kPoison = 0xff;

uint64_t NumberOf(hal::DeviceAddress address) { return (address - kFirst) >> kNumberShift; }
uint64_t OffsetOf(hal::DeviceAddress address) { return address & (kLargest - 1); }

}  // namespace

class DiscreteAllocation : public hal::Allocation {
 public:
  DiscreteAllocation(DiscreteMemory* memory, std::unique_ptr<HostAllocation> backing, hal::DeviceAddress address)
      : memory_(memory), backing_(std::move(backing)), address_(address) {}
  ~DiscreteAllocation() override { memory_->Remove(address_); }

  size_t bytes() const override { return backing_->bytes(); }
  hal::DeviceAddress address() const override { return address_; }
  uint8_t* host() const override { return backing_->host(); }
  absl::Status Write(size_t offset, absl::Span<const uint8_t> from) override { return backing_->Write(offset, from); }
  absl::Status Read(size_t offset, absl::Span<uint8_t> to) const override { return backing_->Read(offset, to); }

 private:
  DiscreteMemory* memory_;
  std::unique_ptr<HostAllocation> backing_;
  hal::DeviceAddress address_;
};

absl::StatusOr<std::unique_ptr<hal::Allocation>> DiscreteMemory::Allocate(size_t bytes, hal::MemorySpace space) {
  if (bytes >= kLargest) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", bytes, " bytes on a discrete device; the limit is ", kLargest - 1));
  }
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<HostAllocation> backing, HostAllocation::Create(bytes, space));
  std::memset(backing->data(), kPoison, bytes);
  BOWLINE_ASSIGN_OR_RETURN(const hal::DeviceAddress address, Insert(backing.get()));
  return std::make_unique<DiscreteAllocation>(this, std::move(backing), address);
}

absl::StatusOr<hal::DeviceAddress> DiscreteMemory::Insert(const HostAllocation* allocation) {
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  if (allocations_.size() >= kNumbers) {
    return absl::ResourceExhaustedError(absl::StrCat("a discrete device has had ", kNumbers, " allocations"));
  }
  allocations_.push_back(allocation);
  return kFirst + ((allocations_.size() - 1) << kNumberShift);
}

void DiscreteMemory::Remove(hal::DeviceAddress address) {
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  allocations_[NumberOf(address)] = nullptr;
}

absl::StatusOr<const HostAllocation*> DiscreteMemory::Find(hal::DeviceAddress address, uint64_t bytes) const {
  const std::shared_lock<std::shared_mutex> lock(mutex_);
  const uint64_t number = NumberOf(address), offset = OffsetOf(address);
  const HostAllocation* found = address >= kFirst && number < allocations_.size() ? allocations_[number] : nullptr;
  if (found == nullptr) {
    return absl::OutOfRangeError(absl::StrFormat("0x%x is no address of this device's memory", address));
  }
  if (offset > found->bytes() || bytes > found->bytes() - offset) {
    return absl::OutOfRangeError(
        absl::StrFormat("%d bytes at 0x%x leave allocation %d of this device, which has %d bytes, at byte %d", bytes,
                        address, number, found->bytes(), offset));
  }
  return found;
}

absl::StatusOr<void*> DiscreteMemory::Translate(hal::DeviceAddress address, uint64_t bytes) const {
  if (address == 0) return nullptr;
  BOWLINE_ASSIGN_OR_RETURN(const HostAllocation* const found, Find(address, bytes));
  return found->data() + OffsetOf(address);
}

absl::StatusOr<void*> DiscreteMemory::TranslateForKernel(hal::DeviceAddress address, uint64_t bytes) const {
  if (address == 0) return nullptr;
  BOWLINE_ASSIGN_OR_RETURN(const HostAllocation* const found, Find(address, bytes));
  if (found->host() != nullptr) {
    return absl::OutOfRangeError(
        absl::StrFormat("0x%x is pinned memory of the host, which copies reach and kernels do not", address));
  }
  return found->data() + OffsetOf(address);
}

}  // namespace bowline
