#ifndef BOWLINE_RUNTIME_BASE_TENSOR_DIVISION_H_
#define BOWLINE_RUNTIME_BASE_TENSOR_DIVISION_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline {

// How a row-major tensor is divided into shards, as numbers. From the global tensor to a shard:
//
//   1. the elements are seen as `view`;
//   2. dimension d of it is padded at its end to a multiple of shards[d] and divided among that many: a block;
//   3. the elements of the block, row-major and padding included, are padded and divided among `flat`: what a rank has
//      in memory;
//   4. likewise among `copies`: what each of several ranks with the same memory stores.
//
// A shard has a place: a number in mixed radix, of the digits shards[0], shards[1], ..., flat, copies. Stored shards
// have no padding: the elements of the global tensor that lie in the shard, in their order there.
class TensorDivision {
 public:
  struct Numbers {
    std::vector<int64_t> view;
    std::vector<uint32_t> shards = {};  // by dimension of the view; empty: 1 each
    uint32_t flat = 1;
    uint32_t copies = 1;
  };

  // kInvalidArgument for negative sizes, another number of `shards` than of dimensions, division among none, or
  // elements or places that do not fit into 62 bits.
  static absl::StatusOr<TensorDivision> Create(const Numbers& numbers);

  // Elements of the global tensor.
  int64_t elements() const { return elements_; }
  int64_t places() const { return places_; }
  // Elements that a rank has in memory, padding included: the same at every place.
  int64_t memory_elements() const { return flat_elements_; }

  // Elements in the stored shard.
  int64_t StoredElements(int64_t place) const;
  // [StoredElements], or the sizes of the block where it is not divided further.
  std::vector<int64_t> StoredShape(int64_t place) const;

  // Elements that lie side by side in the global tensor, in memory, and in the stored shard.
  struct Run {
    int64_t global;
    int64_t local;  // number in the rank's memory
    int64_t count;
  };
  // All elements of the stored shard, in its order. Stops at the first error and returns it.
  absl::Status ForEachRun(int64_t place, absl::FunctionRef<absl::Status(const Run&)> visit) const;

  // The place where element `global` of the global tensor is stored; `count` elements from it on lie side by side
  // there.
  struct Location {
    int64_t place;
    int64_t offset;  // number in the stored shard
    int64_t count;
  };
  Location Locate(int64_t global) const;

 private:
  // Dimensions that are not sharded are one with those before them.
  struct Dimension {
    int64_t size;
    int64_t local;  // size in a block, with padding
    uint32_t shards;
  };
  // One shard: the elements [begin, end) of the padded block that begins at `starts`; `sizes` of it are no padding.
  struct Shard {
    std::vector<int64_t> starts, sizes;
    int64_t flat_begin, begin, end;
  };

  TensorDivision() = default;
  Shard ShardAt(int64_t place) const;
  void SetRange(int64_t flat, int64_t copy, Shard& shard) const;
  // Elements of the block before `position`, a place in the padded block, that are no padding.
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
