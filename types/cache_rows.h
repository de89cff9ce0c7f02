#ifndef BOWLINE_TYPES_CACHE_ROWS_H_
#define BOWLINE_TYPES_CACHE_ROWS_H_

// Rows of a cache of keys or values in int8: the bytes of one head of one token. A row of D elements is
//
//   bytes 0 to 3        the scale, an f32, least significant byte first
//   bytes 4 to 3 + D    whole numbers q from -127 to 127, in two's complement
//
// and element d is scale * q[d]. A row x is written with scale = max |x| / 127 and q = x / scale, rounded to the
// nearest, ties to even. An element is so off by half the scale at most. A scale below the least normal f32 is zero,
// and all elements then are. Where an element is no finite number, the scale is NaN, so that no element of the row is
// one.

#include <cstdint>
#include <string_view>

namespace bowline {

// The name of this row format in attributes `format` of operations and kernels, and in --kv-dtype.
inline constexpr std::string_view kInt8Rows = "int8";
inline constexpr int64_t kInt8ScaleBytes = 4;

constexpr int64_t Int8RowBytes(int64_t elements) { return kInt8ScaleBytes + elements; }

}  // namespace bowline

#endif  // BOWLINE_TYPES_CACHE_ROWS_H_
