#ifndef BOWLINE_KERNELS_REGISTRY_VALID_ROWS_H_
#define BOWLINE_KERNELS_REGISTRY_VALID_ROWS_H_

// Some kernels skip the last rows of their arguments. The number of valid rows is in device memory. For generated code
// a plan states the same facts (Kernel.valid_rows in plan.fbs).

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace bowline::kernels {

// The attribute, with the value 1, that selects the form of a kernel that skips rows which its usual form computes.
inline constexpr std::string_view kLeavesRowsOut = "leaves_rows_out";

struct ValidRows {
  uint32_t count;                   // the argument, i32 of one dimension, whose last element is the number of rows
  std::vector<uint32_t> arguments;  // the kernel neither reads nor writes rows behind the count of these arguments
  // The usual form writes zeros to rows behind the count of these arguments. The form that skips rows computes the same
  // as the usual form would if these arguments were zero behind the count.
  std::vector<uint32_t> zeros = {};
};

// Returns the rows of the kernel's usual form, or of its form with kLeavesRowsOut. Returns null if that form uses all
// rows or does not exist. Both forms have the same arguments if the usual form has the count. Otherwise the form with
// kLeavesRowsOut has the count in addition, before the result.
const ValidRows* FindValidRows(std::string_view kernel, bool leaves_rows_out);

// Returns the number of valid rows among `rows`, given a count of `elements` elements.
inline int64_t CountedRows(const int32_t* count, int64_t elements, int64_t rows) {
  return std::clamp<int64_t>(count[elements - 1], 0, rows);
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_REGISTRY_VALID_ROWS_H_
