#ifndef BOWLINE_KERNELS_REGISTRY_VALID_ROWS_H_
#define BOWLINE_KERNELS_REGISTRY_VALID_ROWS_H_

// Kernels of the registry that leave rows of their arguments alone, because a count that only the device knows says
// that there are fewer. Of generated code a plan says the same (Kernel.valid_rows in plan.fbs).

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace bowline::kernels {

// An attribute, 1, of kernels that have another form, which leaves rows out where the usual one has a meaning for them.
inline constexpr std::string_view kLeavesRowsOut = "leaves_rows_out";

struct ValidRows {
  uint32_t count;                   // argument whose last element says how many rows there are, i32, one dimension
  std::vector<uint32_t> arguments;  // of which rows behind the count are neither read nor written
  // The usual form writes zeros to rows behind the count of these arguments. Of a form that leaves rows out: computes
  // what the usual one computes where these arguments, which it reads, have zeros behind the count.
  std::vector<uint32_t> zeros = {};
};

// Of the kernel's usual form, or of the one with kLeavesRowsOut. Null: that form uses all of its arguments, or does not
// exist. The other form has the same arguments, where the usual one has the count too, or else one more: the count, in
// front of the result.
const ValidRows* FindValidRows(std::string_view kernel, bool leaves_rows_out);

// Returns how many of `rows` rows a count of `elements` elements says there are.
inline int64_t CountedRows(const int32_t* count, int64_t elements, int64_t rows) {
  return std::clamp<int64_t>(count[elements - 1], 0, rows);
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_REGISTRY_VALID_ROWS_H_
