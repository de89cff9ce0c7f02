#ifndef BOWLINE_TEST_UNIT_KERNELS_GROUPED_PROBLEM_H_
#define BOWLINE_TEST_UNIT_KERNELS_GROUPED_PROBLEM_H_

// Random rows in groups, for tests of kernels on any device.

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/cpu/grouped/grouped_reference.h"

namespace bowline::kernels::testing {

inline reference::GroupedSize RandomGroups(std::mt19937_64& random) {
  const auto pick = [&](std::vector<int64_t> choices) { return choices[random() % choices.size()]; };
  return {pick({1, 5, 64, 130, 1100}), pick({1, 3, 16, 33, 100}), pick({1, 2, 17, 64, 300}), pick({1, 2, 4, 9})};
}

// Ascending; some groups have no rows, some rows no group, and some matrices no offsets.
inline std::vector<int32_t> RandomOffsets(std::mt19937_64& random, const reference::GroupedSize& s) {
  std::vector<int32_t> offsets(2 + random() % s.groups);
  for (int32_t& offset : offsets) offset = static_cast<int32_t>(random() % (s.rows + 1));
  std::sort(offsets.begin(), offsets.end());
  if (random() % 2) offsets.front() = 0;
  if (random() % 2) offsets.back() = static_cast<int32_t>(s.rows);
  return offsets;
}

}  // namespace bowline::kernels::testing

#endif  // BOWLINE_TEST_UNIT_KERNELS_GROUPED_PROBLEM_H_
