#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_TENSOR_MEMORY_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_TENSOR_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline {

// The memory, on a device or the host, that holds a rank's shard of a tensor.
class TensorMemory {
 public:
  virtual ~TensorMemory() = default;

  // Reads or writes bytes of the shard from `offset` on. The range must lie inside the shard.
  virtual absl::Status Read(uint64_t offset, absl::Span<uint8_t> to) const = 0;
  virtual absl::Status Write(uint64_t offset, absl::Span<const uint8_t> from) = 0;

  // Makes `bytes` the memory of the whole shard without a copy; `owner` keeps them alive and unchanged. Returns false
  // if the memory cannot do that, so that the caller must write the shard.
  virtual absl::StatusOr<bool> Borrow(absl::Span<const uint8_t> /*bytes*/,
                                      const std::shared_ptr<const void>& /*owner*/) {
    return false;
  }
};

// Wraps a tensor at `data`, which must outlive the result.
std::unique_ptr<TensorMemory> HostTensorMemory(void* data);

// Reads consecutive ranges of any length with one transfer per 1 MiB.
class TensorReader {
 public:
  // `bytes` is the size of `memory`, which must outlive the reader.
  TensorReader(const TensorMemory& memory, uint64_t bytes) : memory_(memory), bytes_(bytes) {}

  // Visits the `size` bytes from `offset` on, in order.
  absl::Status ForRange(uint64_t offset, uint64_t size,
                        absl::FunctionRef<absl::Status(absl::Span<const uint8_t>)> visit);

 private:
  const TensorMemory& memory_;
  const uint64_t bytes_;
  uint64_t begin_ = 0;  // offset of the bytes in `block_`
  std::vector<uint8_t> block_;
};

// Writes consecutive ranges of any length with one transfer per 1 MiB.
class TensorWriter {
 public:
  // The largest size of a range.
  static constexpr uint64_t kMostBytes = uint64_t{1} << 20;

  // `memory` must outlive the writer.
  explicit TensorWriter(TensorMemory& memory) : memory_(memory) { block_.reserve(kMostBytes); }

  // Returns a buffer for the `size` <= kMostBytes bytes from `offset` on. Fill it before any other call.
  absl::StatusOr<uint8_t*> Range(uint64_t offset, uint64_t size);
  // Zeros the `size` bytes from `offset` on.
  absl::Status Zero(uint64_t offset, uint64_t size);
  // Writes the bytes not yet written.
  absl::Status Flush();

 private:
  TensorMemory& memory_;
  uint64_t begin_ = 0;  // offset of the bytes in `block_`
  std::vector<uint8_t> block_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_TENSOR_MEMORY_H_
