#ifndef BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_MEMORY_H_
#define BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_MEMORY_H_

#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "runtime/drivers/host/host_allocation.h"
#include "runtime/hal/allocation.h"

namespace bowline {

// The memory of one device, by address. An address combines the number of an allocation and an offset in it, and is
// above all pointers of the processor. Numbers are not used again. Thread-safe.
class DiscreteMemory {
 public:
  // Allocates memory whose bytes are all 0xff. The allocation must be destroyed before this.
  absl::StatusOr<std::unique_ptr<hal::Allocation>> Allocate(size_t bytes, hal::MemorySpace space);

  // Returns the host's pointer to [address, address + bytes); null for address 0. Returns kOutOfRange if no allocation
  // has all of these bytes.
  absl::StatusOr<void*> Translate(hal::DeviceAddress address, uint64_t bytes) const;
  // Does the same for a kernel. Kernels reach no memory of the host: such an address gives kOutOfRange.
  absl::StatusOr<void*> TranslateForKernel(hal::DeviceAddress address, uint64_t bytes) const;

 private:
  friend class DiscreteAllocation;

  absl::StatusOr<const HostAllocation*> Find(hal::DeviceAddress address, uint64_t bytes) const;
  // Gives the allocation a number.
  absl::StatusOr<hal::DeviceAddress> Insert(const HostAllocation* allocation);
  void Remove(hal::DeviceAddress address);

  mutable std::shared_mutex mutex_;
  std::vector<const HostAllocation*> allocations_;  // by number; null: no longer there
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_MEMORY_H_
