#ifndef BOWLINE_RUNTIME_BASE_PAGE_MEMORY_H_
#define BOWLINE_RUNTIME_BASE_PAGE_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline {

// Zeroed memory from mmap: pages that are never touched cost nothing. It starts at a multiple of 2 MiB and asks for
// huge pages; the page after its last is inaccessible, so that code that runs past the end stops there instead of in
// memory of other owners.
class PageMemory {
 public:
  // Returns kResourceExhausted if the system cannot provide the memory.
  static absl::StatusOr<PageMemory> Create(size_t bytes);

  PageMemory() = default;
  PageMemory(PageMemory&& other) noexcept;
  PageMemory& operator=(PageMemory&& other) noexcept;
  ~PageMemory();

  uint8_t* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  absl::Span<uint8_t> span() const { return {data_, bytes_}; }

 private:
  PageMemory(void* mapping, size_t mapped, uint8_t* data, size_t bytes)
      : mapping_(mapping), mapped_(mapped), data_(data), bytes_(bytes) {}

  void* mapping_ = nullptr;
  size_t mapped_ = 0;
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_PAGE_MEMORY_H_
