#ifndef BOWLINE_RUNTIME_TRAIN_DATA_BLEND_H_
#define BOWLINE_RUNTIME_TRAIN_DATA_BLEND_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace bowline {

// Divides draws 0, 1, 2, ... among sources by weight, evenly. A pure function of the draw's number and the weights, by
// integers alone, so that any machine computes the same, at any draw, in constant memory.
//
// The sources are the leaves of a balanced binary tree. Of the first n draws that reach a node, the left half of its
// sources gets n times its share, rounded to the nearest number. So, of the first n of all draws, the source i of k
// with the share w gets n * w up to an error below 1 + log2(k). Shares are rounded to 40 bits, which is seen after
// 10^12 draws.
class Blend {
 public:
  // There is one weight or more; all are above 0 and at most 1e12. Their sum need not be 1.
  explicit Blend(absl::Span<const double> weights);

  struct Place {
    size_t source = 0;
    int64_t index = 0;  // how many draws before this one took the same source
  };
  // `draw` >= 0. O(log of the number of sources).
  Place PlaceOf(int64_t draw) const;

 private:
  void AddNodes(absl::Span<const double> weights);

  size_t sources_;
  // The share of the left half at each inner node, in units of 2^-62: a node, then its left and its right half.
  std::vector<uint64_t> left_shares_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_DATA_BLEND_H_
