#include "kernels/cuda/device.h"

namespace {

using namespace bowline::device;

// Of one block. Where fault[0] is 0 it becomes 1 + the first index below `count` of which `is_wrong`, and fault[1] what
// the data are there.
template <typename IsWrong>
BOWLINE_DEVICE void TellFirst(const int32_t* data, int64_t count, int32_t* fault, IsWrong is_wrong) {
  int32_t* first = reinterpret_cast<int32_t*>(SharedMemory());
  const int32_t thread = static_cast<int32_t>(threadIdx.x), threads = static_cast<int32_t>(blockDim.x);
  const int32_t none = static_cast<int32_t>(count);
  int32_t own = none;
  for (int64_t i = thread; i < count && own == none; i += threads) {
    if (is_wrong(i)) own = static_cast<int32_t>(i);
  }
  first[thread] = own;
  for (int32_t half = threads / 2; half > 0; half /= 2) {
    Barrier();
    if (thread < half) first[thread] = Smaller(first[thread], first[thread + half]);
  }
  if (thread != 0 || first[0] == none || fault[0] != 0) return;
  fault[0] = first[0] + 1;
  fault[1] = data[first[0]];
}

}  // namespace

// The first of `count` offsets that is below the one before it, or 0, or above `rows`.
BOWLINE_DEVICE_FUNCTION(bowline_check_offsets, 256, const int32_t* offsets, int32_t* fault, int64_t count,
                        int32_t rows) {
  TellFirst(offsets, count, fault, [&](int64_t i) {
    const int32_t before = i == 0 ? 0 : offsets[i - 1];
    return offsets[i] < before || offsets[i] > rows;
  });
}

// The first of `count` ids that is below 0 or not below `rows`.
BOWLINE_DEVICE_FUNCTION(bowline_check_ids, 256, const int32_t* ids, int32_t* fault, int64_t count, int32_t rows) {
  TellFirst(ids, count, fault, [&](int64_t i) { return ids[i] < 0 || ids[i] >= rows; });
}
