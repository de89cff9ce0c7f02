#include "runtime/drivers/cpu/host_allocation.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t RoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

absl::Status CheckRange(size_t offset, size_t size, size_t bytes) {
  if (offset <= bytes && size <= bytes - offset) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(size, " bytes at offset ", offset, " reach beyond an allocation of ", bytes, " bytes"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<hal::Allocation>> HostAllocation::Create(size_t bytes) {
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
  auto* address = reinterpret_cast<uint8_t*>(RoundUp(reinterpret_cast<uintptr_t>(mapping), kHugePage));
  ::mprotect(address + used, page, PROT_NONE);
  // Advice only: a system without huge pages is slower, not wrong.
  if (used >= kHugePage) ::madvise(address, used, MADV_HUGEPAGE);
  return std::unique_ptr<hal::Allocation>(new HostAllocation(mapping, mapped, address, bytes));
}

HostAllocation::~HostAllocation() { ::munmap(mapping_, mapped_); }

absl::Status HostAllocation::Write(size_t offset, absl::Span<const uint8_t> from) {
  BOWLINE_RETURN_IF_ERROR(CheckRange(offset, from.size(), bytes_));
  if (!from.empty()) std::memcpy(address_ + offset, from.data(), from.size());
  return absl::OkStatus();
}

absl::Status HostAllocation::Read(size_t offset, absl::Span<uint8_t> to) const {
  BOWLINE_RETURN_IF_ERROR(CheckRange(offset, to.size(), bytes_));
  if (!to.empty()) std::memcpy(to.data(), address_ + offset, to.size());
  return absl::OkStatus();
}

}  // namespace bowline
