#ifndef BOWLINE_KERNELS_CPU_GROUPED_GROUPED_SHAPE_H_
#define BOWLINE_KERNELS_CPU_GROUPED_GROUPED_SHAPE_H_

// Rows that are sorted into groups, as the kernels of this folder share them: offsets [groups + 1] i32, where rows
// offsets[g] <= r < offsets[g + 1] are those of group g. Offsets are data: whatever they hold, no kernel leaves its
// arguments, because each offset counts as one between the one before it and the number of rows.

#include <algorithm>
#include <cstdint>

#include "absl/functional/function_ref.h"

namespace bowline::kernels {

// A group of `count` rows from `begin` on.
struct RowGroup {
  int64_t group, begin, count;
};

// Calls `body` with each group of `groups` offsets, in order, also with those that have no rows.
inline void ForEachGroup(const int32_t* offsets, int64_t groups, int64_t rows, absl::FunctionRef<void(RowGroup)> body) {
  int64_t begin = std::clamp<int64_t>(offsets[0], 0, rows);
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t end = std::clamp<int64_t>(offsets[group + 1], begin, rows);
    body({group, begin, end - begin});
    begin = end;
  }
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_GROUPED_GROUPED_SHAPE_H_
