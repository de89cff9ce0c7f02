#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_STORED_PART_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_STORED_PART_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "runtime/base/safetensors_writer.h"
#include "runtime/base/status.h"
#include "runtime/train/tensors/checkpoint_files.h"
#include "runtime/train/tensors/sharding.h"

namespace bowline {

// "[12, 3]", the indices of element `number` of a row-major tensor.
std::string DescribeElement(int64_t number, absl::Span<const int64_t> shape);

// Looks for values that are not finite in the bytes that a save copies or writes.
class FiniteCheck {
 public:
  // `allows`: such values are noted and no error.
  explicit FiniteCheck(bool allows) : allows_(allows) {}

  // Looks at elements of `tensor`, of which the first has number `global` in the whole tensor. IsNotFinite
  // (non_finite.h), naming tensor and element, for the first one that is not finite.
  absl::Status Visit(const CheckpointTensor& tensor, int64_t global, absl::Span<const uint8_t> bytes);

  bool allows() const { return allows_; }
  // The first one of all that was allowed; empty if there was none.
  const std::string& found() const { return found_; }

 private:
  bool allows_;
  std::string found_;
};

// The elements of a tensor that one rank stores in a checkpoint, in the order of its file.
class StoredPart {
 public:
  // All of `tensor`, which outlives the part, as a run of one rank stores it.
  static StoredPart Whole(const CheckpointTensor& tensor);
  // The elements of `tensor`, which outlives the part, that `self` stores; nothing where there is none.
  // kInvalidArgument when the sharding is none of the mesh.
  static absl::StatusOr<std::optional<StoredPart>> Of(const CheckpointTensor& tensor, const RankInMesh& self);

  const CheckpointTensor& tensor() const { return *tensor_; }
  // How the file of the rank describes it.
  const SafetensorsSpec& spec() const { return spec_; }
  absl::StatusOr<uint64_t> bytes() const { return TensorBytes(spec_.type, spec_.shape); }

  // Visits all bytes in order, in pieces of any size. `check` may be null.
  absl::Status ForEachBlock(FiniteCheck* check, absl::FunctionRef<absl::Status(absl::Span<const uint8_t>)> visit) const;

  // Copies the elements to `to`, which has bytes() bytes and outlives the part, so that ForEachBlock needs the tensor's
  // memory no more.
  absl::Status CopyTo(absl::Span<uint8_t> to, FiniteCheck* check);

 private:
  StoredPart(const CheckpointTensor& tensor, SafetensorsSpec spec) : tensor_(&tensor), spec_(std::move(spec)) {}

  const CheckpointTensor* tensor_;
  SafetensorsSpec spec_;
  std::optional<ShardedTensor> sharded_;  // nothing: the whole tensor
  int64_t place_ = 0;
  std::optional<absl::Span<const uint8_t>> copy_;
};

// The parts of all tensors that `self` stores, or, if it is a rank alone, of all that are saved.
absl::StatusOr<std::vector<StoredPart>> StoredParts(absl::Span<const CheckpointTensor> tensors, const RankInMesh& self);

// Looks for values that are not finite in the parts that `self` stores of all tensors, at the speed of a copy.
absl::Status CheckFinite(absl::Span<const CheckpointTensor> tensors, const RankInMesh& self, FiniteCheck& check);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_STORED_PART_H_
