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

  // Both return when the copy is complete. A plain cuMemcpyHtoD may return earlier, and non-blocking streams do not
  // wait for it.
  absl::Status Write(CUdeviceptr to, absl::Span<const uint8_t> from) const;
  absl::Status Read(CUdeviceptr from, absl::Span<uint8_t> to) const;

  const CudaCard& card() const { return *card_; }

  // An allocation on the card.
  struct Range {
    CUdeviceptr begin = 0;
    size_t bytes = 0;
  };
  // Returns the allocation that contains `address`; nothing if the address is not memory of this device on the card.
  std::optional<Range> AllocationOf(CUdeviceptr address) const;
  void AddListener(MemoryListener* listener);
  void RemoveListener(MemoryListener* listener);

  // Add and remove an allocation on the card, so that AllocationOf finds it by its addresses.
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
