#include "runtime/train/tensors/tensor_memory.h"

#include <algorithm>
#include <cstring>

namespace bowline {
namespace {

class OnHost : public TensorMemory {
 public:
  explicit OnHost(uint8_t* data) : data_(data) {}

  absl::Status Read(uint64_t offset, absl::Span<uint8_t> to) const override {
    if (!to.empty()) std::memcpy(to.data(), data_ + offset, to.size());
    return absl::OkStatus();
  }
  absl::Status Write(uint64_t offset, absl::Span<const uint8_t> from) override {
    if (!from.empty()) std::memcpy(data_ + offset, from.data(), from.size());
    return absl::OkStatus();
  }

 private:
  uint8_t* data_;
};

constexpr uint64_t kBlockBytes = uint64_t{1} << 20;

}  // namespace

std::unique_ptr<TensorMemory> HostTensorMemory(void* data) {
  return std::make_unique<OnHost>(static_cast<uint8_t*>(data));
}

absl::Status TensorReader::ForRange(uint64_t offset, uint64_t size,
                                    absl::FunctionRef<absl::Status(absl::Span<const uint8_t>)> visit) {
  while (size > 0) {
    if (offset < begin_ || offset >= begin_ + block_.size()) {
      begin_ = offset;
      block_.resize(std::min(kBlockBytes, bytes_ - offset));
      BOWLINE_RETURN_IF_ERROR(memory_.Read(begin_, absl::MakeSpan(block_)));
    }
    const uint64_t now = std::min(size, begin_ + block_.size() - offset);
    BOWLINE_RETURN_IF_ERROR(visit({block_.data() + (offset - begin_), static_cast<size_t>(now)}));
    offset += now;
    size -= now;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint8_t*> TensorWriter::Range(uint64_t offset, uint64_t size) {
  if (offset != begin_ + block_.size() || block_.size() + size > kMostBytes) BOWLINE_RETURN_IF_ERROR(Flush());
  if (block_.empty()) begin_ = offset;
  block_.resize(block_.size() + size);
  return block_.data() + block_.size() - size;
}

absl::Status TensorWriter::Zero(uint64_t offset, uint64_t size) {
  while (size > 0) {
    const uint64_t now = std::min(size, kMostBytes);
    BOWLINE_ASSIGN_OR_RETURN(uint8_t* const to, Range(offset, now));
    std::memset(to, 0, now);
    offset += now;
    size -= now;
  }
  return absl::OkStatus();
}

absl::Status TensorWriter::Flush() {
  if (!block_.empty()) BOWLINE_RETURN_IF_ERROR(memory_.Write(begin_, block_));
  begin_ += block_.size();
  block_.clear();
  return absl::OkStatus();
}

}  // namespace bowline
