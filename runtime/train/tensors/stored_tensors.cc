#include "runtime/train/tensors/stored_tensors.h"

#include <algorithm>

#include "runtime/base/convert_elements.h"

namespace bowline {

const StoredTensors::Tensor* StoredTensors::Find(absl::string_view key) const {
  const auto found = std::lower_bound(tensors_.begin(), tensors_.end(), key,
                                      [](const Tensor& tensor, absl::string_view name) { return tensor.key < name; });
  return found == tensors_.end() || found->key != key ? nullptr : &*found;
}

absl::Status ForEachPiece(StoredTensors& stored, const StoredTensors::Tensor& tensor, const ShardedTensor& sharded,
                          int64_t rank,
                          absl::FunctionRef<absl::Status(absl::Span<const uint8_t> bytes, int64_t local)> visit) {
  const auto size = static_cast<int64_t>(SizeOf(tensor.type));
  const TensorDivision& memory = sharded.memory();
  return memory.ForEachRun(sharded.MemoryPlace(rank), [&](TensorDivision::Run run) -> absl::Status {
    while (run.count > 0) {
      BOWLINE_ASSIGN_OR_RETURN(absl::Span<const uint8_t> bytes, stored.BytesFrom(tensor, run.global));
      bytes = bytes.first(static_cast<size_t>(std::min(static_cast<int64_t>(bytes.size()), run.count * size)));
      BOWLINE_RETURN_IF_ERROR(visit(bytes, run.local));
      const int64_t elements = static_cast<int64_t>(bytes.size()) / size;
      run.global += elements;
      run.local += elements;
      run.count -= elements;
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<bool> BorrowPart(const std::shared_ptr<StoredTensors>& stored, const StoredTensors::Tensor& tensor,
                                const ShardedTensor& sharded, int64_t rank, ElementType type, TensorMemory& memory) {
  if (!stored->KeepsBytes(tensor) || tensor.type != type) return false;
  const auto size = static_cast<size_t>(sharded.memory().memory_elements()) * SizeOf(type);
  absl::Span<const uint8_t> whole;
  BOWLINE_RETURN_IF_ERROR(
      ForEachPiece(*stored, tensor, sharded, rank, [&](absl::Span<const uint8_t> bytes, int64_t local) {
        if (local == 0 && bytes.size() == size) whole = bytes;
        return absl::OkStatus();
      }));
  if (whole.empty()) return false;
  return memory.Borrow(whole, stored);
}

absl::Status ReadPart(StoredTensors& stored, const StoredTensors::Tensor& tensor, const ShardedTensor& sharded,
                      int64_t rank, ElementType type, TensorMemory& memory, const PieceVisitor& look) {
  const TensorDivision& division = sharded.memory();
  const size_t from_size = SizeOf(tensor.type), to_size = SizeOf(type);
  TensorWriter writer(memory);
  if (division.StoredElements(sharded.MemoryPlace(rank)) < division.memory_elements()) {
    BOWLINE_RETURN_IF_ERROR(writer.Zero(0, static_cast<uint64_t>(division.memory_elements()) * to_size));
    BOWLINE_RETURN_IF_ERROR(writer.Flush());
  }
  const size_t most = TensorWriter::kMostBytes / to_size;
  BOWLINE_RETURN_IF_ERROR(
      ForEachPiece(stored, tensor, sharded, rank, [&](absl::Span<const uint8_t> bytes, int64_t local) -> absl::Status {
        while (!bytes.empty()) {
          const size_t elements = std::min(bytes.size() / from_size, most);
          // While the processor has them at hand.
          if (look != nullptr) BOWLINE_RETURN_IF_ERROR(look(bytes.first(elements * from_size), local));
          BOWLINE_ASSIGN_OR_RETURN(uint8_t* const to,
                                   writer.Range(static_cast<uint64_t>(local) * to_size, elements * to_size));
          Convert(tensor.type, bytes.first(elements * from_size), type, to);
          bytes.remove_prefix(elements * from_size);
          local += static_cast<int64_t>(elements);
        }
        return absl::OkStatus();
      }));
  return writer.Flush();
}

}  // namespace bowline
