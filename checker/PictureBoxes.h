//===- PictureBoxes.h - boxes that are wide enough to be seen *- C++ -*-===//

#ifndef BOWLINE_CHECKER_PICTUREBOXES_H
#define BOWLINE_CHECKER_PICTUREBOXES_H

#include "absl/types/span.h"

#include <cstddef>
#include <vector>

namespace bowline {

/// Maps seconds to pixels.
struct TimeScale {
  double left = 0, width = 0; ///< pixels
  double seconds = 0;         ///< time at the right end; if 0, every time maps to the left end

  double at(double time) const { return seconds > 0 ? left + time / seconds * width : left; }
};

/// A range of time, in seconds.
struct TimeRange {
  double begin = 0, end = 0;
};

/// One box that stands for the intervals [first, last) of a row.
struct PictureBox {
  size_t first = 0, last = 0;
  double x = 0, width = 0; ///< pixels
};

/// Returns the boxes for the intervals of a row, which are sorted and do not overlap. An interval of at least `least`
/// pixels gets a box of its own. Narrower intervals share a box with those that begin within `least` pixels of its left
/// end. So a row of w pixels has at most 2 (w / least + 1) boxes, however many intervals it has.
std::vector<PictureBox> boxesOf(absl::Span<const TimeRange> intervals, const TimeScale &scale, double least);

} // namespace bowline

#endif // BOWLINE_CHECKER_PICTUREBOXES_H
