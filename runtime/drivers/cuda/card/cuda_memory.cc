#include "runtime/drivers/cuda/card/cuda_memory.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

constexpr size_t kAlignment = 4096;
constexpr size_t kMost = size_t{1} << 60;
constexpr uint8_t kPoison = 0xff;

uint64_t Aligned(uint64_t address) { return (address + kAlignment - 1) / kAlignment * kAlignment; }

class DeviceAllocation : public hal::Allocation {
 public:
  // `memory` is the allocation from CUDA, and begins at or before `address`.
  DeviceAllocation(CudaMemory* owner, CUdeviceptr memory, CUdeviceptr address, size_t bytes)
      : owner_(owner), memory_(memory), address_(address), bytes_(bytes) {
    owner_->Announce({address, bytes});
  }
  ~DeviceAllocation() override {
    owner_->Forget(address_);
    if (owner_->card().MakeCurrent().ok()) owner_->card().api().cuMemFree(memory_);
  }

  size_t bytes() const override { return bytes_; }
  hal::DeviceAddress address() const override { return address_; }
  uint8_t* host() const override { return nullptr; }
  absl::Status Write(size_t offset, absl::Span<const uint8_t> from) override {
    BOWLINE_RETURN_IF_ERROR(hal::CheckTransfer(offset, from.size(), bytes_));
    return owner_->Write(address_ + offset, from);
  }
  absl::Status Read(size_t offset, absl::Span<uint8_t> to) const override {
    BOWLINE_RETURN_IF_ERROR(hal::CheckTransfer(offset, to.size(), bytes_));
    return owner_->Read(address_ + offset, to);
  }

 private:
  CudaMemory* owner_;
  CUdeviceptr memory_, address_;
  size_t bytes_;
};

class PinnedAllocation : public hal::Allocation {
 public:
  PinnedAllocation(const CudaMemory* owner, void* memory, uint8_t* host, CUdeviceptr address, size_t bytes)
      : owner_(owner), memory_(memory), host_(host), address_(address), bytes_(bytes) {}
  ~PinnedAllocation() override {
    if (owner_->card().MakeCurrent().ok()) owner_->card().api().cuMemFreeHost(memory_);
  }

  size_t bytes() const override { return bytes_; }
  hal::DeviceAddress address() const override { return address_; }
  uint8_t* host() const override { return host_; }
  absl::Status Write(size_t offset, absl::Span<const uint8_t> from) override {
    BOWLINE_RETURN_IF_ERROR(hal::CheckTransfer(offset, from.size(), bytes_));
    if (!from.empty()) std::memcpy(host_ + offset, from.data(), from.size());
    return absl::OkStatus();
  }
  absl::Status Read(size_t offset, absl::Span<uint8_t> to) const override {
    BOWLINE_RETURN_IF_ERROR(hal::CheckTransfer(offset, to.size(), bytes_));
    if (!to.empty()) std::memcpy(to.data(), host_ + offset, to.size());
    return absl::OkStatus();
  }

 private:
  const CudaMemory* owner_;
  void* memory_;
  uint8_t* host_;
  CUdeviceptr address_;
  size_t bytes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CudaMemory>> CudaMemory::Create(CudaCard* card, bool poison) {
  std::unique_ptr<CudaMemory> memory(new CudaMemory(card, poison));
  BOWLINE_RETURN_IF_ERROR(card->MakeCurrent());
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(card->api(), cuStreamCreateWithPriority, &memory->stream_,
                                       CU_STREAM_NON_BLOCKING, card->lowest_priority()));
  return memory;
}

CudaMemory::~CudaMemory() {
  if (stream_ != nullptr && card_->MakeCurrent().ok()) card_->api().cuStreamDestroy(stream_);
}

void CudaMemory::Announce(const Range& range) {
  const std::lock_guard<std::mutex> lock(mutex_);
  allocations_[range.begin] = range.bytes;
}

void CudaMemory::Forget(CUdeviceptr begin) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (MemoryListener* const listener : listeners_) listener->BeforeFree(begin);
  allocations_.erase(begin);
}

std::optional<CudaMemory::Range> CudaMemory::AllocationOf(CUdeviceptr address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return std::nullopt;
  const auto& [begin, bytes] = *std::prev(after);
  if (address - begin >= bytes) return std::nullopt;
  return Range{begin, bytes};
}

void CudaMemory::AddListener(MemoryListener* listener) {
  const std::lock_guard<std::mutex> lock(mutex_);
  listeners_.push_back(listener);
}

void CudaMemory::RemoveListener(MemoryListener* listener) {
  const std::lock_guard<std::mutex> lock(mutex_);
  listeners_.erase(std::remove(listeners_.begin(), listeners_.end(), listener), listeners_.end());
}

absl::StatusOr<std::unique_ptr<hal::Allocation>> CudaMemory::Allocate(size_t bytes, hal::MemorySpace space) {
  BOWLINE_RETURN_IF_ERROR(card_->MakeCurrent());
  const bool pinned = space == hal::MemorySpace::kPinnedHost;
  absl::StatusOr<std::unique_ptr<hal::Allocation>> allocation =
      bytes > kMost ? absl::ResourceExhaustedError("no machine has as much")
      : pinned      ? AllocateHost(bytes)
                    : AllocateDevice(bytes);
  if (allocation.ok() || !absl::IsResourceExhausted(allocation.status())) return allocation;
  std::string there;
  size_t free = 0, total = 0;
  if (!pinned && card_->api().cuMemGetInfo(&free, &total) == CUDA_SUCCESS) {
    there = absl::StrCat(", of which ", free, " of ", total, " are free");
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot allocate ", bytes, " bytes of ", pinned ? "pinned host memory" : "memory of the card", there, ": ",
      allocation.status().message(), "; compile with a smaller batch or sequence, or for more ranks"));
}

absl::StatusOr<std::unique_ptr<hal::Allocation>> CudaMemory::AllocateDevice(size_t bytes) {
  const CudaApi& api = card_->api();
  // Large memory comes in whole pages of 2 MiB; CUDA promises an alignment of 256 bytes for small memory.
  const size_t asked = bytes + (bytes >= size_t{2} << 20 ? 0 : kAlignment);
  CUdeviceptr memory = 0;
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api, cuMemAlloc, &memory, asked));
  if (Aligned(memory) - memory > asked - bytes) {
    api.cuMemFree(memory);
    BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api, cuMemAlloc, &memory, bytes + kAlignment));
  }
  auto allocation = std::make_unique<DeviceAllocation>(this, memory, Aligned(memory), bytes);
  if (poison_) BOWLINE_RETURN_IF_ERROR(Poison(allocation->address(), bytes));
  return allocation;
}

absl::StatusOr<std::unique_ptr<hal::Allocation>> CudaMemory::AllocateHost(size_t bytes) {
  const CudaApi& api = card_->api();
  void* memory = nullptr;
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api, cuMemHostAlloc, &memory, bytes + kAlignment,
                                       CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  CUdeviceptr device = 0;
  const absl::Status mapped = BOWLINE_CUDA(api, cuMemHostGetDevicePointer, &device, memory, 0);
  if (!mapped.ok()) {
    api.cuMemFreeHost(memory);
    return mapped;
  }
  const uint64_t skipped = Aligned(device) - device;
  auto allocation = std::make_unique<PinnedAllocation>(this, memory, static_cast<uint8_t*>(memory) + skipped,
                                                       device + skipped, bytes);
  if (poison_) std::memset(allocation->host(), kPoison, bytes);
  return allocation;
}

absl::Status CudaMemory::Poison(CUdeviceptr begin, size_t bytes) const {
  if (bytes == 0) return absl::OkStatus();
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(card_->api(), cuMemsetD8Async, begin, kPoison, bytes, stream_));
  return BOWLINE_CUDA(card_->api(), cuStreamSynchronize, stream_);
}

absl::Status CudaMemory::Write(CUdeviceptr to, absl::Span<const uint8_t> from) const {
  if (from.empty()) return absl::OkStatus();
  BOWLINE_RETURN_IF_ERROR(card_->MakeCurrent());
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(card_->api(), cuMemcpyHtoDAsync, to, from.data(), from.size(), stream_));
  return BOWLINE_CUDA(card_->api(), cuStreamSynchronize, stream_);
}

absl::Status CudaMemory::Read(CUdeviceptr from, absl::Span<uint8_t> to) const {
  if (to.empty()) return absl::OkStatus();
  BOWLINE_RETURN_IF_ERROR(card_->MakeCurrent());
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(card_->api(), cuMemcpyDtoHAsync, to.data(), from, to.size(), stream_));
  return BOWLINE_CUDA(card_->api(), cuStreamSynchronize, stream_);
}

}  // namespace bowline
