#ifndef BOWLINE_KERNELS_CPU_PAGED_INT8_ROWS_H_
#define BOWLINE_KERNELS_CPU_PAGED_INT8_ROWS_H_

// Rounds rows of a cache to int8. types/cache_rows.h defines the format.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/cpu/half.h"
#include "types/cache_rows.h"

namespace bowline::kernels {

// The largest absolute value. Compares magnitudes as integers: the loop vectorizes, and infinity and NaN are largest.
template <typename V>
float LargestMagnitude(const V* values, int64_t width) {
  int32_t largest = 0;
  for (int64_t i = 0; i < width; ++i) {
    largest = std::max(largest, std::bit_cast<int32_t>(Widen(values[i])) & 0x7fffffff);
  }
  return std::bit_cast<float>(largest);
}

// The scale of a row with the largest absolute value `largest`: 0 if it would be subnormal, NaN if that is not finite.
inline float Int8RowScale(float largest) {
  if (!std::isfinite(largest)) return std::numeric_limits<float>::quiet_NaN();
  const float scale = largest / 127.0f;
  return scale < std::numeric_limits<float>::min() ? 0.0f : scale;
}

// Rounds `width` values to a row of Int8RowBytes(width) bytes at `to`: first the scale, then the elements.
template <typename V>
void StoreInt8Row(const V* values, int64_t width, uint8_t* to) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it to a number rounds the number to an integer
  const float scale = Int8RowScale(LargestMagnitude(values, width));
  std::memcpy(to, &scale, sizeof(scale));
  to += kInt8ScaleBytes;
  if (!(scale > 0.0f)) {
    std::memset(to, 0, static_cast<size_t>(width));
    return;
  }
  for (int64_t i = 0; i < width; ++i) {
    const float whole = (Widen(values[i]) / scale + kMagic) - kMagic;
    to[i] = static_cast<uint8_t>(static_cast<int32_t>(std::clamp(whole, -127.0f, 127.0f)));
  }
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PAGED_INT8_ROWS_H_
