#include "runtime/drivers/host/host_allocation.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/drivers/host/host_memory.h"

namespace bowline {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t RoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

absl::StatusOr<std::unique_ptr<HostAllocation>> HostAllocation::Create(size_t bytes, hal::MemorySpace space) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  if (bytes > SIZE_MAX / 4) return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes, " bytes"));
  const size_t used = RoundUp(bytes, page);
  const size_t mapped = used + kHugePage + page;
  void* mapping = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes,
                                                     " bytes of host memory: ", std::strerror(errno),
                                                     "; free memory, or compile with a smaller batch or sequence"));
  }
  auto* data = reinterpret_cast<uint8_t*>(RoundUp(reinterpret_cast<uintptr_t>(mapping), kHugePage));
  ::mprotect(data + used, page, PROT_NONE);
  // Advice only: a system without huge pages is slower, not wrong.
  if (used >= kHugePage) ::madvise(data, used, MADV_HUGEPAGE);
  return std::unique_ptr<HostAllocation>(new HostAllocation(mapping, mapped, data, bytes, space));
}

HostAllocation::~HostAllocation() { ::munmap(mapping_, mapped_); }

hal::DeviceAddress HostAllocation::address() const { return AddressOf(data_); }

absl::Status HostAllocation::Write(size_t offset, absl::Span<const uint8_t> from) {
  BOWLINE_RETURN_IF_ERROR(hal::CheckTransfer(offset, from.size(), bytes_));
  if (!from.empty()) std::memcpy(data_ + offset, from.data(), from.size());
  return absl::OkStatus();
}

absl::Status HostAllocation::Read(size_t offset, absl::Span<uint8_t> to) const {
  BOWLINE_RETURN_IF_ERROR(hal::CheckTransfer(offset, to.size(), bytes_));
  if (!to.empty()) std::memcpy(to.data(), data_ + offset, to.size());
  return absl::OkStatus();
}

}  // namespace bowline
