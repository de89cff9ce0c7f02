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
  result.view_cuts_ = numbers.cuts;
  if (numbers.cuts.empty()) result.view_cuts_.assign(numbers.view.size(), 1);
  if (result.view_cuts_.size() != numbers.view.size()) return error("is not cut by dimension");
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
    if (!multiply_places(result.view_cuts_[d])) return error("is divided among none, or too many");
    const int64_t local = DivideCeil(size, result.view_cuts_[d]);
    result.view_local_.push_back(local);
    result.elements_ *= size;
    result.block_elements_ *= local;
    if (result.view_cuts_[d] == 1 && !result.dimensions_.empty()) {
      result.dimensions_.back().size *= size;
      result.dimensions_.back().local *= size;
    } else {
      result.dimensions_.push_back({size, local, result.view_cuts_[d]});
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

void TensorDivision::SetRange(int64_t flat, int64_t copy, Part& part) const {
  // Neither product exceeds the padded block by more than a factor of 2; both fit.
  part.flat_begin = std::min(flat * flat_elements_, block_elements_);
  const int64_t flat_end = std::min(part.flat_begin + flat_elements_, block_elements_);
  part.begin = std::min(part.flat_begin + copy * copy_elements_, flat_end);
  part.end = std::min(part.begin + copy_elements_, flat_end);
}

TensorDivision::Part TensorDivision::PartAt(int64_t place) const {
  Part part;
  part.starts.resize(dimensions_.size());
  part.sizes.resize(dimensions_.size());
  const int64_t copy = place % copies_;
  place /= copies_;
  SetRange(place % flat_, copy, part);
  place /= flat_;
  for (size_t d = dimensions_.size(); d-- > 0;) {
    const Dimension& dimension = dimensions_[d];
    part.starts[d] = std::min(place % dimension.cuts * dimension.local, dimension.size);
    part.sizes[d] = std::min(dimension.local, dimension.size - part.starts[d]);
    place /= dimension.cuts;
  }
  return part;
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
  const Part part = PartAt(place);
  return StoredBefore(part.sizes, part.end) - StoredBefore(part.sizes, part.begin);
}

std::vector<int64_t> TensorDivision::StoredShape(int64_t place) const {
  if (flat_ > 1 || copies_ > 1) return {StoredElements(place)};
  std::vector<int64_t> shape(view_.size());
  for (size_t d = view_.size(); d-- > 0;) {
    const int64_t start = std::min(place % view_cuts_[d] * view_local_[d], view_[d]);
    shape[d] = std::min(view_local_[d], view_[d] - start);
    place /= view_cuts_[d];
  }
  return shape;
}

absl::Status TensorDivision::ForEachRun(int64_t place, absl::FunctionRef<absl::Status(const Run&)> visit) const {
  const Part part = PartAt(place);
  if (elements_ == 0 || part.begin == part.end) return absl::OkStatus();
  for (const int64_t size : part.sizes) {
    if (size == 0) return absl::OkStatus();
  }
  const size_t last = dimensions_.size() - 1;
  const int64_t width = dimensions_[last].local;
  for (int64_t row = part.begin / width; row <= (part.end - 1) / width; ++row) {
    const int64_t first = std::max<int64_t>(part.begin - row * width, 0);
    const int64_t end = std::min(part.end - row * width, part.sizes[last]);
    int64_t global = part.starts[last] + first, stride = dimensions_[last].size, rest = row;
    bool padding = end <= first;
    for (size_t d = last; !padding && d-- > 0;) {
      const int64_t coordinate = rest % dimensions_[d].local;
      rest /= dimensions_[d].local;
      padding = coordinate >= part.sizes[d];
      global += (part.starts[d] + coordinate) * stride;
      stride *= dimensions_[d].size;
    }
    if (padding) continue;
    BOWLINE_RETURN_IF_ERROR(visit({global, row * width + first - part.flat_begin, end - first}));
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
    const int64_t cut = coordinate / dimension.local, inside = coordinate % dimension.local;
    sizes[d] = std::min(dimension.local, dimension.size - cut * dimension.local);
    if (d + 1 == dimensions_.size()) in_row = sizes[d] - inside;
    position += inside * padded;
    padded *= dimension.local;
    place += cut * radix;
    radix *= dimension.cuts;
  }
  const int64_t flat = position / flat_elements_;
  const int64_t copy = position % flat_elements_ / copy_elements_;
  Part part;
  SetRange(flat, copy, part);
  Location result;
  result.place = (place * flat_ + flat) * copies_ + copy;
  result.offset = StoredBefore(sizes, position) - StoredBefore(sizes, part.begin);
  result.count = std::min(in_row, part.end - position);
  return result;
}

}  // namespace bowline
