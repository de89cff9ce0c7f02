#ifndef BOWLINE_TEST_UNIT_KERNELS_GROUPED_PROBLEM_H_
#define BOWLINE_TEST_UNIT_KERNELS_GROUPED_PROBLEM_H_

// Random rows in groups, for tests of kernels on any device.

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/cpu/grouped/grouped_reference.h"
#include "kernels/registry/registry.h"

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

// Offsets of which some are right, and others wrong in one place or in all.
inline std::vector<int32_t> RandomBoundaries(std::mt19937_64& random, int32_t rows, int which) {
  std::vector<int32_t> offsets(2 + random() % (which % 5 == 0 ? 1000 : 6));
  for (int32_t& offset : offsets) offset = static_cast<int32_t>(random() % (static_cast<uint64_t>(rows) + 1));
  std::sort(offsets.begin(), offsets.end());
  const std::vector<int32_t> hostile = {-1, rows + 1, INT32_MIN, INT32_MAX, 0};
  if (which % 3 > 0) offsets[random() % offsets.size()] = hostile[random() % hostile.size()];
  if (which % 7 == 0) std::reverse(offsets.begin(), offsets.end());
  return offsets;
}

// -1: none.
inline int32_t FirstWrongOffset(const std::vector<int32_t>& offsets, int64_t rows) {
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] < 0 || offsets[i] > rows || (i > 0 && offsets[i] < offsets[i - 1])) return static_cast<int32_t>(i);
  }
  return -1;
}

inline Signature CheckOffsets(size_t offsets, int64_t rows) {
  return {"check_offsets",
          {{"rows", {rows}, {}, {}}},
          {{Access::kRead, DType::kI32, {static_cast<int64_t>(offsets)}}, {Access::kReadWrite, DType::kI32, {2}}}};
}

}  // namespace bowline::kernels::testing

#endif  // BOWLINE_TEST_UNIT_KERNELS_GROUPED_PROBLEM_H_
