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

// Returns "[12, 3]", the indices of element `number` of a row-major tensor of this shape.
std::string DescribeElement(int64_t number, absl::Span<const int64_t> shape);

// Searches bytes that a save copies or writes for infinities and NaNs.
class FiniteCheck {
 public:
  // If `allows`, such values are noted and are no error.
  explicit FiniteCheck(bool allows) : allows_(allows) {}

  // Checks consecutive elements of `tensor`; the first has index `global` in the whole tensor. Returns an error for
  // which IsNotFinite (non_finite.h) holds, naming tensor and element, for the first infinity or NaN.
  absl::Status Visit(const CheckpointTensor& tensor, int64_t global, absl::Span<const uint8_t> bytes);

  bool allows() const { return allows_; }
  // Describes the first allowed infinity or NaN; empty if there was none.
  const std::string& found() const { return found_; }

 private:
  bool allows_;
  std::string found_;
};

// The elements of a tensor that one rank stores in a checkpoint, in the order of the rank's file.
class StoredPart {
 public:
  // Returns all of `tensor`, as a run of one rank stores it. `tensor` must outlive the part.
  static StoredPart Whole(const CheckpointTensor& tensor);
  // Returns the elements of `tensor` that `self` stores; nothing if it stores none. `tensor` must outlive the part.
  // Returns kInvalidArgument when the sharding does not fit the mesh.
  static absl::StatusOr<std::optional<StoredPart>> Of(const CheckpointTensor& tensor, const RankInMesh& self);

  const CheckpointTensor& tensor() const { return *tensor_; }
  // Type and shape of the part in the header of the rank's file.
  const SafetensorsSpec& spec() const { return spec_; }
  absl::StatusOr<uint64_t> bytes() const { return TensorBytes(spec_.type, spec_.shape); }

  // Visits all bytes in order, in pieces of any size. `check` may be null; it is not used after CopyTo, which checks.
  absl::Status ForEachBlock(FiniteCheck* check, absl::FunctionRef<absl::Status(absl::Span<const uint8_t>)> visit) const;

  // Copies the elements to `to`, which must have bytes() bytes and outlive the part. ForEachBlock then reads the copy
  // and no longer the tensor's memory.
  absl::Status CopyTo(absl::Span<uint8_t> to, FiniteCheck* check);

 private:
  StoredPart(const CheckpointTensor& tensor, SafetensorsSpec spec) : tensor_(&tensor), spec_(std::move(spec)) {}

  const CheckpointTensor* tensor_;
  SafetensorsSpec spec_;
  std::optional<ShardedTensor> sharded_;  // absent: the part is the whole tensor
  int64_t place_ = 0;
  std::optional<absl::Span<const uint8_t>> copy_;
};

// Returns the parts of all saved tensors that `self` stores; the whole tensors in a run of one rank.
absl::StatusOr<std::vector<StoredPart>> StoredParts(absl::Span<const CheckpointTensor> tensors, const RankInMesh& self);

// Runs `check` on the parts of all tensors that `self` stores, as fast as a copy.
absl::Status CheckFinite(absl::Span<const CheckpointTensor> tensors, const RankInMesh& self, FiniteCheck& check);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_STORED_PART_H_
