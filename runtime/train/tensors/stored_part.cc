#include "runtime/train/tensors/stored_part.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/train/tensors/non_finite.h"

namespace bowline {
std::string DescribeElement(int64_t number, absl::Span<const int64_t> shape) {
  std::vector<int64_t> indices(shape.size());
  for (size_t d = shape.size(); d > 0; --d) {
    indices[d - 1] = number % shape[d - 1];
    number /= shape[d - 1];
  }
  return absl::StrCat("[", absl::StrJoin(indices, ", "), "]");
}

absl::Status FiniteCheck::Visit(const CheckpointTensor& tensor, int64_t global, absl::Span<const uint8_t> bytes) {
  if (!found_.empty()) return absl::OkStatus();
  const std::optional<size_t> first = FirstNonFinite(tensor.type, bytes);
  if (!first.has_value()) return absl::OkStatus();
  std::string what = absl::StrCat(
      tensor.role == CheckpointRole::kParameter ? "the parameter '" : "the optimizer's state '", tensor.key,
      "' is not finite from element ", DescribeElement(global + static_cast<int64_t>(*first), tensor.shape), " on");
  if (!allows_) return NotFiniteError(what);
  found_ = std::move(what);
  return absl::OkStatus();
}

StoredPart StoredPart::Whole(const CheckpointTensor& tensor) {
  return {tensor, {tensor.key, tensor.type, tensor.shape}};
}

absl::StatusOr<std::optional<StoredPart>> StoredPart::Of(const CheckpointTensor& tensor, const RankInMesh& self) {
  BOWLINE_ASSIGN_OR_RETURN(ShardedTensor sharded, ShardedTensor::Create(self.mesh, tensor.shape, tensor.sharding));
  const int64_t place = sharded.StoragePlace(self.rank);
  if (!sharded.HasRole(self.rank) || sharded.storage().StoredElements(place) == 0) return std::nullopt;
  StoredPart part(tensor, {tensor.key, tensor.type, sharded.storage().StoredShape(place)});
  part.sharded_ = std::move(sharded);
  part.place_ = place;
  return part;
}

absl::Status StoredPart::ForEachBlock(FiniteCheck* check,
                                      absl::FunctionRef<absl::Status(absl::Span<const uint8_t>)> visit) const {
  if (copy_.has_value()) return visit(*copy_);
  BOWLINE_ASSIGN_OR_RETURN(const uint64_t stored, bytes());
  const size_t size = SizeOf(spec_.type);
  const uint64_t in_memory =
      sharded_.has_value() ? static_cast<uint64_t>(sharded_->memory().memory_elements()) * size : stored;
  TensorReader reader(*tensor_->memory, in_memory);
  const auto visit_run = [&](const TensorDivision::Run& run) {
    int64_t global = run.global;
    return reader.ForRange(static_cast<uint64_t>(run.local) * size, static_cast<uint64_t>(run.count) * size,
                           [&](absl::Span<const uint8_t> block) -> absl::Status {
                             if (check != nullptr) BOWLINE_RETURN_IF_ERROR(check->Visit(*tensor_, global, block));
                             global += static_cast<int64_t>(block.size() / size);
                             return visit(block);
                           });
  };
  if (!sharded_.has_value()) return visit_run({0, 0, static_cast<int64_t>(stored / size)});
  return sharded_->storage().ForEachRun(place_, visit_run);
}

absl::Status StoredPart::CopyTo(absl::Span<uint8_t> to, FiniteCheck* check) {
  uint8_t* end = to.data();
  BOWLINE_RETURN_IF_ERROR(ForEachBlock(check, [&](absl::Span<const uint8_t> block) {
    std::memcpy(end, block.data(), block.size());
    end += block.size();
    return absl::OkStatus();
  }));
  copy_ = to;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<StoredPart>> StoredParts(absl::Span<const CheckpointTensor> tensors,
                                                    const RankInMesh& self) {
  std::vector<StoredPart> parts;
  for (const CheckpointTensor& tensor : tensors) {
    if (!tensor.is_saved) continue;
    if (self.mesh.ranks() == 1) {
      parts.push_back(StoredPart::Whole(tensor));
      continue;
    }
    if (tensor.memory == nullptr) continue;
    BOWLINE_ASSIGN_OR_RETURN(std::optional<StoredPart> part, StoredPart::Of(tensor, self));
    if (part.has_value()) parts.push_back(*std::move(part));
  }
  return parts;
}

absl::Status CheckFinite(absl::Span<const CheckpointTensor> tensors, const RankInMesh& self, FiniteCheck& check) {
  BOWLINE_ASSIGN_OR_RETURN(const std::vector<StoredPart> parts, StoredParts(tensors, self));
  for (const StoredPart& part : parts) {
    BOWLINE_RETURN_IF_ERROR(part.ForEachBlock(&check, [](auto) { return absl::OkStatus(); }));
  }
  return absl::OkStatus();
}

}  // namespace bowline
