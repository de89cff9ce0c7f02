#ifndef BOWLINE_RUNTIME_TRAIN_DATA_BLEND_H_
#define BOWLINE_RUNTIME_TRAIN_DATA_BLEND_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace bowline {

// Divides draws 0, 1, 2, ... evenly among sources by weight. The result depends only on the number of the draw and on
// the weights. It uses integers alone, so that all machines agree, and constant memory for any draw.
//
// The sources are the leaves of a balanced binary tree. Of the first n draws that reach a node, the left half of its
// sources gets n times its share, rounded to the nearest integer. So of the first n draws overall, a source with share
// w of k sources gets n * w, up to an error below 1 + log2(k). Shares are rounded to 40 bits, which matters only after
// 10^12 draws.
class Blend {
 public:
  // `weights` has at least one element; all are above 0 and at most 1e12. Their sum need not be 1.
  explicit Blend(absl::Span<const double> weights);

  struct Place {
    size_t source = 0;
    int64_t index = 0;  // the number of earlier draws from this source
  };
  // `draw` >= 0. O(log of the number of sources).
  Place PlaceOf(int64_t draw) const;

 private:
  void AddNodes(absl::Span<const double> weights);

  size_t sources_;
  // The left half's share at each inner node, in units of 2^-62. In preorder: node, left half, right half.
  std::vector<uint64_t> left_shares_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_DATA_BLEND_H_
