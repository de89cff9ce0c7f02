#include "runtime/base/tensor_division.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_join.h"

namespace bowline {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 62;

int64_t DivideCeil(int64_t a, int64_t b) { return a / b + (a % b != 0); }

}  // namespace

absl::StatusOr<TensorDivision> TensorDivision::Create(const Numbers& numbers) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor seen as [", absl::StrJoin(numbers.view, ", "), "] ", what));
  };
  TensorDivision result;
  result.view_ = numbers.view;
  result.view_shards_ = numbers.shards;
  if (numbers.shards.empty()) result.view_shards_.assign(numbers.view.size(), 1);
  if (result.view_shards_.size() != numbers.view.size()) return error("is not sharded by dimension");
  result.flat_ = numbers.flat;
  result.copies_ = numbers.copies;
  const auto multiply_places = [&](uint32_t by) {
    return by > 0 && !__builtin_mul_overflow(result.places_, int64_t{by}, &result.places_) &&
           result.places_ <= kMaxElements;
  };
  // A size of 0 hides no other one that is too large.
  int64_t bound = 1;
  for (size_t d = 0; d < numbers.view.size(); ++d) {
    const int64_t size = numbers.view[d];
    if (size < 0) return error("has a negative size");
    if (__builtin_mul_overflow(bound, std::max<int64_t>(size, 1), &bound) || bound > kMaxElements) {
      return error("has too many elements");
    }
    if (!multiply_places(result.view_shards_[d])) return error("is divided among none, or too many");
    const int64_t local = DivideCeil(size, result.view_shards_[d]);
    result.view_local_.push_back(local);
    result.elements_ *= size;
    result.block_elements_ *= local;
    if (result.view_shards_[d] == 1 && !result.dimensions_.empty()) {
      result.dimensions_.back().size *= size;
      result.dimensions_.back().local *= size;
    } else {
      result.dimensions_.push_back({size, local, result.view_shards_[d]});
    }
  }
  if (result.dimensions_.empty()) result.dimensions_.push_back({1, 1, 1});
  if (!multiply_places(numbers.flat) || !multiply_places(numbers.copies)) {
    return error("is divided among none, or too many");
  }
  result.flat_elements_ = DivideCeil(result.block_elements_, numbers.flat);
  result.copy_elements_ = DivideCeil(result.flat_elements_, numbers.copies);
  return result;
}

void TensorDivision::SetRange(int64_t flat, int64_t copy, Shard& shard) const {
  // Neither product exceeds the padded block by more than a factor of 2; both fit.
  shard.flat_begin = std::min(flat * flat_elements_, block_elements_);
  const int64_t flat_end = std::min(shard.flat_begin + flat_elements_, block_elements_);
  shard.begin = std::min(shard.flat_begin + copy * copy_elements_, flat_end);
  shard.end = std::min(shard.begin + copy_elements_, flat_end);
}

TensorDivision::Shard TensorDivision::ShardAt(int64_t place) const {
  Shard shard;
  shard.starts.resize(dimensions_.size());
  shard.sizes.resize(dimensions_.size());
  const int64_t copy = place % copies_;
  place /= copies_;
  SetRange(place % flat_, copy, shard);
  place /= flat_;
  for (size_t d = dimensions_.size(); d-- > 0;) {
    const Dimension& dimension = dimensions_[d];
    shard.starts[d] = std::min(place % dimension.shards * dimension.local, dimension.size);
    shard.sizes[d] = std::min(dimension.local, dimension.size - shard.starts[d]);
    place /= dimension.shards;
  }
  return shard;
}

int64_t TensorDivision::StoredBefore(absl::Span<const int64_t> sizes, int64_t position) const {
  int64_t padded = block_elements_, stored = 1, before = 0;
  for (const int64_t size : sizes) stored *= size;
  if (position >= padded) return stored;
  for (size_t d = 0; d < sizes.size() && stored > 0; ++d) {
    padded /= dimensions_[d].local;
    stored /= sizes[d];
    const int64_t coordinate = position / padded;
    position %= padded;
    before += std::min(coordinate, sizes[d]) * stored;
    if (coordinate >= sizes[d]) break;
  }
  return before;
}

int64_t TensorDivision::StoredElements(int64_t place) const {
  const Shard shard = ShardAt(place);
  return StoredBefore(shard.sizes, shard.end) - StoredBefore(shard.sizes, shard.begin);
}

std::vector<int64_t> TensorDivision::StoredShape(int64_t place) const {
  if (flat_ > 1 || copies_ > 1) return {StoredElements(place)};
  std::vector<int64_t> shape(view_.size());
  for (size_t d = view_.size(); d-- > 0;) {
    const int64_t start = std::min(place % view_shards_[d] * view_local_[d], view_[d]);
    shape[d] = std::min(view_local_[d], view_[d] - start);
    place /= view_shards_[d];
  }
  return shape;
}

absl::Status TensorDivision::ForEachRun(int64_t place, absl::FunctionRef<absl::Status(const Run&)> visit) const {
  const Shard shard = ShardAt(place);
  if (elements_ == 0 || shard.begin == shard.end) return absl::OkStatus();
  for (const int64_t size : shard.sizes) {
    if (size == 0) return absl::OkStatus();
  }
  const size_t last = dimensions_.size() - 1;
  const int64_t width = dimensions_[last].local;
  for (int64_t row = shard.begin / width; row <= (shard.end - 1) / width; ++row) {
    const int64_t first = std::max<int64_t>(shard.begin - row * width, 0);
    const int64_t end = std::min(shard.end - row * width, shard.sizes[last]);
    int64_t global = shard.starts[last] + first, stride = dimensions_[last].size, rest = row;
    bool padding = end <= first;
    for (size_t d = last; !padding && d-- > 0;) {
      const int64_t coordinate = rest % dimensions_[d].local;
      rest /= dimensions_[d].local;
      padding = coordinate >= shard.sizes[d];
      global += (shard.starts[d] + coordinate) * stride;
      stride *= dimensions_[d].size;
    }
    if (padding) continue;
    BOWLINE_RETURN_IF_ERROR(visit({global, row * width + first - shard.flat_begin, end - first}));
  }
  return absl::OkStatus();
}

TensorDivision::Location TensorDivision::Locate(int64_t global) const {
  // Dimensions go from the last to the first, for that is how coordinates come out of a number.
  int64_t position = 0, padded = 1, place = 0, radix = 1, in_row = 0;
  absl::InlinedVector<int64_t, 8> sizes(dimensions_.size());
  for (size_t d = dimensions_.size(); d-- > 0;) {
    const Dimension& dimension = dimensions_[d];
    const int64_t coordinate = global % dimension.size;
    global /= dimension.size;
    const int64_t shard = coordinate / dimension.local, inside = coordinate % dimension.local;
    sizes[d] = std::min(dimension.local, dimension.size - shard * dimension.local);
    if (d + 1 == dimensions_.size()) in_row = sizes[d] - inside;
    position += inside * padded;
    padded *= dimension.local;
    place += shard * radix;
    radix *= dimension.shards;
  }
  const int64_t flat = position / flat_elements_;
  const int64_t copy = position % flat_elements_ / copy_elements_;
  Shard shard;
  SetRange(flat, copy, shard);
  Location result;
  result.place = (place * flat_ + flat) * copies_ + copy;
  result.offset = StoredBefore(sizes, position) - StoredBefore(sizes, shard.begin);
  result.count = std::min(in_row, shard.end - position);
  return result;
}

}  // namespace bowline
