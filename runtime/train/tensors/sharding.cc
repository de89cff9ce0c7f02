#include "runtime/train/tensors/sharding.h"

#include <utility>

#include "absl/strings/str_join.h"

namespace bowline {
namespace {

absl::StatusOr<int64_t> Elements(absl::Span<const int64_t> shape) {
  BOWLINE_ASSIGN_OR_RETURN(const TensorDivision whole,
                           TensorDivision::Create({.view = std::vector<int64_t>(shape.begin(), shape.end())}));
  return whole.elements();
}

}  // namespace

int64_t RankMesh::ranks() const {
  int64_t ranks = 1;
  for (const Axis& axis : axes) ranks *= axis.size;
  return ranks;
}

absl::StatusOr<ShardedTensor> ShardedTensor::Create(const RankMesh& mesh, absl::Span<const int64_t> shape,
                                                    const Sharding& sharding) {
  std::vector<Digit> digits(mesh.axes.size());
  int64_t stride = 1;
  for (size_t i = digits.size(); i-- > 0;) {
    digits[i] = {mesh.axes[i].size, stride};
    stride *= mesh.axes[i].size;
  }
  const auto has_role = [&](uint32_t axis) { return static_cast<int>(axis) == mesh.role_axis; };
  if (sharding.role >= (mesh.role_axis < 0 ? 1 : mesh.axes[mesh.role_axis].size)) {
    return absl::InvalidArgumentError(absl::StrCat("there is no role ", sharding.role));
  }

  TensorDivision::Numbers numbers = {.view = sharding.view};
  if (numbers.view.empty()) numbers.view.assign(shape.begin(), shape.end());
  std::vector<bool> used(digits.size(), false);
  std::vector<Digit> axes;
  // Multiplies the sizes of the axes; a mesh is small.
  const auto use = [&](absl::Span<const uint32_t> along, uint32_t* count) -> absl::Status {
    for (const uint32_t axis : along) {
      if (axis >= digits.size() || has_role(axis)) return absl::InvalidArgumentError("an axis divides no tensor");
      if (used[axis]) {
        return absl::InvalidArgumentError(absl::StrCat("axis '", mesh.axes[axis].name, "' divides it twice"));
      }
      used[axis] = true;
      axes.push_back(digits[axis]);
      *count *= digits[axis].size;
    }
    return absl::OkStatus();
  };
  for (const std::vector<uint32_t>& axes_of_dim : sharding.dim_shardings) {
    BOWLINE_RETURN_IF_ERROR(use(axes_of_dim, &numbers.shards.emplace_back(1)));
  }
  BOWLINE_RETURN_IF_ERROR(use(sharding.flat, &numbers.flat));
  BOWLINE_ASSIGN_OR_RETURN(TensorDivision memory, TensorDivision::Create(numbers));
  BOWLINE_ASSIGN_OR_RETURN(const int64_t elements, Elements(shape));
  if (memory.elements() != elements) {
    return absl::InvalidArgumentError(absl::StrCat("the view [", absl::StrJoin(numbers.view, ", "),
                                                   "] has other elements than [", absl::StrJoin(shape, ", "), "]"));
  }
  const std::vector<Digit> memory_axes = axes;
  std::vector<uint32_t> others;
  for (uint32_t axis = 0; axis < digits.size(); ++axis) {
    if (!used[axis] && !has_role(axis)) others.push_back(axis);
  }
  BOWLINE_RETURN_IF_ERROR(use(others, &numbers.copies));
  BOWLINE_ASSIGN_OR_RETURN(TensorDivision storage, TensorDivision::Create(numbers));
  ShardedTensor result(std::move(memory), std::move(storage));
  result.memory_axes_ = memory_axes;
  result.storage_axes_ = std::move(axes);
  if (mesh.role_axis >= 0) result.role_axis_ = digits[mesh.role_axis];
  result.role_ = sharding.role;
  return result;
}

int64_t ShardedTensor::PlaceAlong(absl::Span<const Digit> axes, int64_t rank) {
  int64_t place = 0;
  for (const Digit& axis : axes) place = place * axis.size + rank / axis.stride % axis.size;
  return place;
}

int64_t ShardedTensor::RankAt(int64_t place) const {
  int64_t rank = role_ * role_axis_.stride;
  for (size_t i = storage_axes_.size(); i-- > 0;) {
    rank += place % storage_axes_[i].size * storage_axes_[i].stride;
    place /= storage_axes_[i].size;
  }
  return rank;
}

bool ShardedTensor::HasRole(int64_t rank) const { return rank / role_axis_.stride % role_axis_.size == role_; }

}  // namespace bowline
