#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_SHARDING_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_SHARDING_H_

// Says which elements of a tensor each rank holds in memory, and which it stores in checkpoints.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_division.h"

namespace bowline {

// The ranks of a run, numbered in row-major order of their coordinates: the last axis varies fastest.
struct RankMesh {
  struct Axis {
    std::string name;
    uint32_t size = 1;

    bool operator==(const Axis&) const = default;
  };
  std::vector<Axis> axes;
  int role_axis = -1;  // index of the axis whose coordinate is a rank's role; -1: all ranks have role 0

  int64_t ranks() const;
  bool operator==(const RankMesh&) const = default;
};

struct RankInMesh {
  RankMesh mesh = {};
  int64_t rank = 0;
};

// Which mesh axes shard a tensor. Axes are indices into RankMesh.axes; each occurs at most once, the role axis never.
struct Sharding {
  std::vector<int64_t> view = {};  // shape in which the tensor is sharded; empty: its own shape
  std::vector<std::vector<uint32_t>> dim_shardings =
      {};                           // axes per dimension of the view, outermost first; none: whole
  std::vector<uint32_t> flat = {};  // axes that further shard each resulting block, flattened
  uint32_t role = 0;

  bool operator==(const Sharding&) const = default;
};

// A tensor and how the ranks of a mesh divide it.
class ShardedTensor {
 public:
  // Returns kInvalidArgument when the sharding fits neither the mesh nor the shape.
  static absl::StatusOr<ShardedTensor> Create(const RankMesh& mesh, absl::Span<const int64_t> shape,
                                              const Sharding& sharding);

  // How the ranks of the role hold the tensor in memory. Ranks along axes that do not shard it hold copies.
  const TensorDivision& memory() const { return memory_; }
  int64_t MemoryPlace(int64_t rank) const { return PlaceAlong(memory_axes_, rank); }

  // How the ranks of the role store the tensor in checkpoints: ranks with equal copies store an equal share each, so
  // that every element is stored once.
  const TensorDivision& storage() const { return storage_; }
  int64_t StoragePlace(int64_t rank) const { return PlaceAlong(storage_axes_, rank); }
  int64_t RankAt(int64_t storage_place) const;
  bool HasRole(int64_t rank) const;

 private:
  // A mesh axis as a digit of rank numbers: coordinate = rank / stride % size.
  struct Digit {
    uint32_t size;
    int64_t stride;
  };

  ShardedTensor(TensorDivision memory, TensorDivision storage)
      : memory_(std::move(memory)), storage_(std::move(storage)) {}
  static int64_t PlaceAlong(absl::Span<const Digit> axes, int64_t rank);

  TensorDivision memory_, storage_;
  std::vector<Digit> memory_axes_, storage_axes_;
  Digit role_axis_ = {1, 1};
  uint32_t role_ = 0;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TENSORS_SHARDING_H_
