//===- PictureBoxes.cpp - boxes that are wide enough to be seen -----------===//

#include "checker/PictureBoxes.h"

namespace bowline {

std::vector<PictureBox> boxesOf(absl::Span<const TimeRange> intervals, const TimeScale &scale, double least) {
  std::vector<PictureBox> boxes;
  bool isOpen = false; // whether the last box takes narrow intervals that begin near its begin
  for (size_t i = 0; i < intervals.size(); ++i) {
    const double x = scale.at(intervals[i].begin), end = scale.at(intervals[i].end);
    const bool isNarrow = end - x < least;
    if (isOpen && isNarrow && x < boxes.back().x + least) {
      boxes.back().last = i + 1;
      boxes.back().width = end - boxes.back().x;
      continue;
    }
    boxes.push_back({i, i + 1, x, end - x});
    isOpen = isNarrow;
  }
  return boxes;
}

} // namespace bowline
