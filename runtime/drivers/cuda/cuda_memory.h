#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CUDA_MEMORY_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CUDA_MEMORY_H_

#include <memory>

#include "runtime/drivers/cuda/cuda_card.h"
#include "runtime/hal/allocation.h"

namespace bowline {

// Allocates memory of a card, or of the host that the card reaches, and moves bytes on a stream of its own. It must
// outlive what it allocated. Thread-safe.
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

 private:
  CudaMemory(CudaCard* card, bool poison) : card_(card), poison_(poison) {}

  absl::StatusOr<std::unique_ptr<hal::Allocation>> AllocateDevice(size_t bytes);
  absl::StatusOr<std::unique_ptr<hal::Allocation>> AllocateHost(size_t bytes);
  absl::Status Poison(CUdeviceptr begin, size_t bytes) const;

  CudaCard* card_;
  bool poison_;
  CUstream stream_ = nullptr;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CUDA_MEMORY_H_
