#include "kernels/cuda/device.h"

namespace {
using namespace bowline::device;
}

// One block. Where fault[0] is 0 it becomes 1 + the index of the first of `count` offsets that is below the one before
// it, or 0, or above `rows`.
BOWLINE_DEVICE_FUNCTION(bowline_check_offsets, 256, const int32_t* offsets, int32_t* fault, int64_t count,
                        int32_t rows) {
  int32_t* first = reinterpret_cast<int32_t*>(SharedMemory());
  const int32_t thread = static_cast<int32_t>(threadIdx.x), threads = static_cast<int32_t>(blockDim.x);
  const int32_t none = static_cast<int32_t>(count);
  int32_t own = none;
  for (int64_t i = thread; i < count && own == none; i += threads) {
    const int32_t before = i == 0 ? 0 : offsets[i - 1];
    if (offsets[i] < before || offsets[i] > rows) own = static_cast<int32_t>(i);
  }
  first[thread] = own;
  for (int32_t half = threads / 2; half > 0; half /= 2) {
    Barrier();
    if (thread < half) first[thread] = Smaller(first[thread], first[thread + half]);
  }
  if (thread == 0 && first[0] != none && *fault == 0) *fault = first[0] + 1;
}
