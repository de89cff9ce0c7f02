#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_MEMORY_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_MEMORY_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/drivers/cuda/card/cuda_card.h"
#include "runtime/hal/allocation.h"

namespace bowline {

// A listener that learns the address of card memory before that memory is freed.
class MemoryListener {
 public:
  virtual ~MemoryListener() = default;
  virtual void BeforeFree(CUdeviceptr memory) = 0;
};

// Allocates memory of a card, or of the host that the card reaches, and moves bytes on a stream of its own. It must
// outlive its allocations. Thread-safe.
class CudaMemory {
 public:
  static absl::StatusOr<std::unique_ptr<CudaMemory>> Create(CudaCard* card, bool poison);
  ~CudaMemory();
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  absl::StatusOr<std::unique_ptr<hal::Allocation>> Allocate(size_t bytes, hal::MemorySpace space);

  // Return when the bytes are there. A plain cuMemcpyHtoD may return while they still are on their way, and streams
  // that do not block do not wait for it.
  absl::Status Write(CUdeviceptr to, absl::Span<const uint8_t> from) const;
  absl::Status Read(CUdeviceptr from, absl::Span<uint8_t> to) const;

  const CudaCard& card() const { return *card_; }

  // An allocation on the card.
  struct Range {
    CUdeviceptr begin = 0;
    size_t bytes = 0;
  };
  // The allocation in which `address` lies, unless that is no memory of this device's on the card.
  std::optional<Range> AllocationOf(CUdeviceptr address) const;
  void AddListener(MemoryListener* listener);
  void RemoveListener(MemoryListener* listener);

  // For allocations on the card, which are known by their address from their begin to their end.
  void Announce(const Range& range);
  void Forget(CUdeviceptr begin);

 private:
  CudaMemory(CudaCard* card, bool poison) : card_(card), poison_(poison) {}

  absl::StatusOr<std::unique_ptr<hal::Allocation>> AllocateDevice(size_t bytes);
  absl::StatusOr<std::unique_ptr<hal::Allocation>> AllocateHost(size_t bytes);
  absl::Status Poison(CUdeviceptr begin, size_t bytes) const;

  CudaCard* card_;
  bool poison_;
  CUstream stream_ = nullptr;
  mutable std::mutex mutex_;  // guards the members below
  std::map<CUdeviceptr, size_t> allocations_;
  std::vector<MemoryListener*> listeners_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_MEMORY_H_
