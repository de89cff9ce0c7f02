#ifndef BOWLINE_RUNTIME_BASE_TENSOR_DIVISION_H_
#define BOWLINE_RUNTIME_BASE_TENSOR_DIVISION_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline {

// The division of a row-major tensor into shards, in numbers. From the global tensor to a stored shard:
//
//   1. the elements are viewed in the shape `view`;
//   2. dimension d of the view is padded at its end to a multiple of shards[d] and cut into that many parts: a block;
//   3. the elements of the block, row-major and padding included, are padded and divided among `flat`: a rank has one
//      of these parts in memory;
//   4. that part is divided likewise among `copies`: each of several ranks with the same memory stores one share.
//
// A shard has a place: a number in mixed radix, with the digits shards[0], shards[1], ..., flat, copies. A stored shard
// has no padding: it holds the elements of the global tensor that lie in the shard, in the order of the shard.
class TensorDivision {
 public:
  struct Numbers {
    std::vector<int64_t> view;
    std::vector<uint32_t> shards = {};  // by dimension of the view; empty: 1 each
    uint32_t flat = 1;
    uint32_t copies = 1;
  };

  // Returns kInvalidArgument for negative sizes, a number of `shards` other than the number of dimensions, a division
  // among 0, or elements or places that do not fit into 62 bits.
  static absl::StatusOr<TensorDivision> Create(const Numbers& numbers);

  // The number of elements of the global tensor.
  int64_t elements() const { return elements_; }
  int64_t places() const { return places_; }
  // The number of elements that a rank has in memory, padding included; the same at every place.
  int64_t memory_elements() const { return flat_elements_; }

  // The number of elements in the stored shard at a place.
  int64_t StoredElements(int64_t place) const;
  // The shape of the stored shard: the block's without padding if it is not divided further, else [StoredElements].
  std::vector<int64_t> StoredShape(int64_t place) const;

  // Elements that are contiguous in the global tensor, in the rank's memory and in the stored shard.
  struct Run {
    int64_t global;
    int64_t local;  // index in the rank's memory
    int64_t count;
  };
  // Calls `visit` with all elements of the stored shard, in its order. Stops at the first error and returns it.
  absl::Status ForEachRun(int64_t place, absl::FunctionRef<absl::Status(const Run&)> visit) const;

  // The place that stores element `global` of the global tensor. The `count` elements from this one on are contiguous
  // in the stored shard.
  struct Location {
    int64_t place;
    int64_t offset;  // index in the stored shard
    int64_t count;
  };
  Location Locate(int64_t global) const;

 private:
  // A dimension that is not sharded is merged into the dimension before it.
  struct Dimension {
    int64_t size;
    int64_t local;  // size in a block, with padding
    uint32_t shards;
  };
  // A shard: elements [begin, end) of the padded block that begins at `starts`. `sizes` is its shape without padding.
  struct Shard {
    std::vector<int64_t> starts, sizes;
    int64_t flat_begin, begin, end;
  };

  TensorDivision() = default;
  Shard ShardAt(int64_t place) const;
  void SetRange(int64_t flat, int64_t copy, Shard& shard) const;
  // The number of elements before index `position` of the padded block that are not padding.
  int64_t StoredBefore(absl::Span<const int64_t> sizes, int64_t position) const;

  std::vector<Dimension> dimensions_;
  std::vector<int64_t> view_, view_local_;
  std::vector<uint32_t> view_shards_;
  int64_t elements_ = 1;
  int64_t places_ = 1;
  uint32_t flat_ = 1, copies_ = 1;
  int64_t block_elements_ = 1;
  int64_t flat_elements_ = 1;
  int64_t copy_elements_ = 1;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_TENSOR_DIVISION_H_
