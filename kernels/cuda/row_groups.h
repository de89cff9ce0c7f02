#ifndef BOWLINE_KERNELS_CUDA_ROW_GROUPS_H_
#define BOWLINE_KERNELS_CUDA_ROW_GROUPS_H_

// Rows that are sorted into groups, as kernels/cpu/grouped/grouped_shape.h defines them: whatever offsets hold, each
// counts as one between the one before it and the number of rows.

#include "kernels/cuda/device.h"

namespace bowline::device {

// A block of rows of one group; rows of no group are two further groups, `kNone`.
struct RowBlock {
  static constexpr int64_t kNone = -1;
  int64_t group, begin, end, first;  // the group's rows, and the first of the block; begin == end: there is no block
};

// `leaves_rows_out`: there are no blocks of the rows behind the last group.
BOWLINE_DEVICE RowBlock FindRowBlock(const int32_t* offsets, int64_t groups, int64_t rows, int64_t tile, int64_t index,
                                     bool leaves_rows_out) {
  int64_t begin = 0;
  for (int64_t group = -1; group < groups + (leaves_rows_out ? 0 : 1); ++group) {
    const int64_t end = group == groups ? rows : Clamped(int64_t{offsets[group + 1]}, begin, rows);
    const int64_t blocks = CeilDiv(end - begin, tile);
    if (index < blocks) return {group < groups ? group : RowBlock::kNone, begin, end, begin + index * tile};
    index -= blocks;
    begin = end;
  }
  return {RowBlock::kNone, 0, 0, 0};
}

struct RowRange {
  int64_t begin, end;
};

// The rows of a group; of one that offsets lack, none.
BOWLINE_DEVICE RowRange RowsOf(const int32_t* offsets, int64_t groups, int64_t rows, int64_t group) {
  if (group >= groups) return {0, 0};
  int64_t begin = 0, end = Clamped(int64_t{offsets[0]}, int64_t{0}, rows);
  for (int64_t g = 0; g <= group; ++g) {
    begin = end;
    end = Clamped(int64_t{offsets[g + 1]}, begin, rows);
  }
  return {begin, end};
}

}  // namespace bowline::device

#endif  // BOWLINE_KERNELS_CUDA_ROW_GROUPS_H_
