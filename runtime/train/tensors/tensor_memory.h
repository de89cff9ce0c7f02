#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_TENSOR_MEMORY_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_TENSOR_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline {

// The memory in which a rank has its shard of a tensor: on a device, or on the host.
class TensorMemory {
 public:
  virtual ~TensorMemory() = default;

  // The bytes of the shard from `offset` on; all of them exist.
  virtual absl::Status Read(uint64_t offset, absl::Span<uint8_t> to) const = 0;
  virtual absl::Status Write(uint64_t offset, absl::Span<const uint8_t> from) = 0;

  // Makes `bytes` the memory of the whole shard, without a copy. `owner` keeps these bytes alive and unchanged. Returns
  // false where the caller must write the shard instead.
  virtual absl::StatusOr<bool> Borrow(absl::Span<const uint8_t> /*bytes*/,
                                      const std::shared_ptr<const void>& /*owner*/) {
    return false;
  }
};

// A tensor at `data`, which outlives it.
std::unique_ptr<TensorMemory> HostTensorMemory(void* data);

// Reads ranges that follow each other, however short they are, by a transfer for each 1 MiB of memory.
class TensorReader {
 public:
  // `memory` has so many bytes, and outlives it.
  TensorReader(const TensorMemory& memory, uint64_t bytes) : memory_(memory), bytes_(bytes) {}

  // Visits the `size` bytes from `offset` on, in order.
  absl::Status ForRange(uint64_t offset, uint64_t size,
                        absl::FunctionRef<absl::Status(absl::Span<const uint8_t>)> visit);

 private:
  const TensorMemory& memory_;
  const uint64_t bytes_;
  uint64_t begin_ = 0;  // of the bytes in `block_`
  std::vector<uint8_t> block_;
};

// Writes ranges, likewise.
class TensorWriter {
 public:
  // The longest range.
  static constexpr uint64_t kMostBytes = uint64_t{1} << 20;

  // `memory` outlives it.
  explicit TensorWriter(TensorMemory& memory) : memory_(memory) { block_.reserve(kMostBytes); }

  // Returns where the caller puts the `size` <= kMostBytes bytes from `offset` on, before any other call.
  absl::StatusOr<uint8_t*> Range(uint64_t offset, uint64_t size);
  // Zeros the `size` bytes from `offset` on.
  absl::Status Zero(uint64_t offset, uint64_t size);
  // Writes the bytes not yet written.
  absl::Status Flush();

 private:
  TensorMemory& memory_;
  uint64_t begin_ = 0;  // of the bytes in `block_`
  std::vector<uint8_t> block_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_TENSOR_MEMORY_H_
