#include "runtime/base/page_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t RoundUpTo(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

absl::StatusOr<PageMemory> PageMemory::Create(size_t bytes) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  if (bytes > SIZE_MAX / 4) return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes, " bytes"));
  const size_t used = RoundUpTo(bytes, page);
  const size_t mapped = used + kHugePage + page;
  void* mapping = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", bytes, " bytes of host memory: ", std::strerror(errno)));
  }
  auto* data = reinterpret_cast<uint8_t*>(RoundUpTo(reinterpret_cast<uintptr_t>(mapping), kHugePage));
  ::mprotect(data + used, page, PROT_NONE);
  // Advice only: a system without huge pages is slower, not wrong.
  if (used >= kHugePage) ::madvise(data, used, MADV_HUGEPAGE);
  return PageMemory(mapping, mapped, data, bytes);
}

PageMemory::PageMemory(PageMemory&& other) noexcept { *this = std::move(other); }

PageMemory& PageMemory::operator=(PageMemory&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

PageMemory::~PageMemory() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_);
}

}  // namespace bowline
