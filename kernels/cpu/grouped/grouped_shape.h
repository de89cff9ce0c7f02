#ifndef BOWLINE_KERNELS_CPU_GROUPED_GROUPED_SHAPE_H_
#define BOWLINE_KERNELS_CPU_GROUPED_GROUPED_SHAPE_H_

// Rows sorted into groups, for all kernels of this folder, by `offsets` [groups + 1] i32: rows r with
// offsets[g] <= r < offsets[g + 1] belong to group g. Offsets are data: whatever they hold, no kernel accesses memory
// outside of its arguments, because it clamps each offset to between the offset before it and the number of rows.

#include <algorithm>
#include <cstdint>

#include "absl/functional/function_ref.h"

namespace bowline::kernels {

// The `count` rows of a group, from row `begin` on.
struct RowGroup {
  int64_t group, begin, count;
};

// Calls `body` for each of `groups` groups, in ascending order, including groups without rows.
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
