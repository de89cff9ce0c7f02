#include "runtime/drivers/host/host_allocation.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/drivers/host/host_memory.h"

namespace bowline {

absl::StatusOr<std::unique_ptr<HostAllocation>> HostAllocation::Create(size_t bytes, hal::MemorySpace space) {
  absl::StatusOr<PageMemory> memory = PageMemory::Create(bytes);
  if (!memory.ok()) {
    return absl::Status(
        memory.status().code(),
        absl::StrCat(memory.status().message(), "; free memory, or compile with a smaller batch or sequence"));
  }
  return std::unique_ptr<HostAllocation>(new HostAllocation(*std::move(memory), space));
}

hal::DeviceAddress HostAllocation::address() const { return AddressOf(data()); }

absl::Status HostAllocation::Write(size_t offset, absl::Span<const uint8_t> from) {
  BOWLINE_RETURN_IF_ERROR(hal::CheckTransfer(offset, from.size(), bytes()));
  if (!from.empty()) std::memcpy(data() + offset, from.data(), from.size());
  return absl::OkStatus();
}

absl::Status HostAllocation::Read(size_t offset, absl::Span<uint8_t> to) const {
  BOWLINE_RETURN_IF_ERROR(hal::CheckTransfer(offset, to.size(), bytes()));
  if (!to.empty()) std::memcpy(to.data(), data() + offset, to.size());
  return absl::OkStatus();
}

}  // namespace bowline
