#include "runtime/train/data/blend.h"

#include <cmath>
#include <numeric>

namespace bowline {
namespace {

// Fewer than f64 has, so that weights of one proportion, as 1 : 2 and 0.1 : 0.2, have one share.
constexpr int kShareBits = 40;

// Of the first `draws` draws, how many go to a part with this share.
int64_t CountOf(int64_t draws, uint64_t share) {
  using Wide = unsigned __int128;
  const Wide half = Wide{1} << (kShareBits - 1);
  return static_cast<int64_t>((static_cast<Wide>(draws) * share + half) >> kShareBits);
}

}  // namespace

Blend::Blend(absl::Span<const double> weights) : sources_(weights.size()) { AddNodes(weights); }

void Blend::AddNodes(absl::Span<const double> weights) {
  if (weights.size() < 2) return;
  const absl::Span<const double> left = weights.first(weights.size() / 2), right = weights.subspan(left.size());
  const double of_left = std::accumulate(left.begin(), left.end(), 0.0);
  const double share = of_left / (of_left + std::accumulate(right.begin(), right.end(), 0.0));
  left_shares_.push_back(static_cast<uint64_t>(std::llround(std::ldexp(share, kShareBits))));
  AddNodes(left);
  AddNodes(right);
}

Blend::Place Blend::PlaceOf(int64_t draw) const {
  Place place{0, draw};
  size_t node = 0;
  for (size_t count = sources_; count > 1;) {
    const size_t left = count / 2;
    const int64_t before = CountOf(place.index, left_shares_[node]);
    if (CountOf(place.index + 1, left_shares_[node]) > before) {
      place.index = before;
      node += 1;
      count = left;
    } else {
      place.index -= before;
      place.source += left;
      node += left;  // itself, and the left - 1 nodes of the left half
      count -= left;
    }
  }
  return place;
}

}  // namespace bowline
