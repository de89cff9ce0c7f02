#ifndef BOWLINE_RUNTIME_TRAIN_TENSORS_SHARDING_H_
#define BOWLINE_RUNTIME_TRAIN_TENSORS_SHARDING_H_

// The elements of a tensor that each rank holds in memory and stores in checkpoints.

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
  int role_axis = -1;  // ranks with coordinate r along it have role r; -1 if all ranks have role 0

  int64_t ranks() const;
  bool operator==(const RankMesh&) const = default;
};

struct RankInMesh {
  RankMesh mesh = {};
  int64_t rank = 0;
};

// The sharding of a tensor. Axes are indices into RankMesh.axes; no axis is there twice, and the role's is not there.
struct Sharding {
  std::vector<int64_t> view = {};  // empty: the tensor's shape
  std::vector<std::vector<uint32_t>> dim_shardings =
      {};                           // by dimension of the view, the first axis outermost; empty: whole
  std::vector<uint32_t> flat = {};  // axes that shard the resulting blocks, seen as one dimension
  uint32_t role = 0;

  bool operator==(const Sharding&) const = default;
};

// One tensor and its division among the ranks of a mesh.
class ShardedTensor {
 public:
  // kInvalidArgument when the sharding is none of the mesh or of the shape.
  static absl::StatusOr<ShardedTensor> Create(const RankMesh& mesh, absl::Span<const int64_t> shape,
                                              const Sharding& sharding);

  // Returns how the ranks of the role hold the tensor in memory. Ranks along axes that do not divide it have copies.
  const TensorDivision& memory() const { return memory_; }
  int64_t MemoryPlace(int64_t rank) const { return PlaceAlong(memory_axes_, rank); }

  // Returns how the ranks of the role store the tensor: the holders of copies store an equal share each, so that every
  // element is stored once.
  const TensorDivision& storage() const { return storage_; }
  int64_t StoragePlace(int64_t rank) const { return PlaceAlong(storage_axes_, rank); }
  int64_t RankAt(int64_t storage_place) const;
  bool HasRole(int64_t rank) const;

 private:
  // An axis as a digit of rank numbers.
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
