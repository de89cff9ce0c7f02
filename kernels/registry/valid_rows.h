#ifndef BOWLINE_KERNELS_REGISTRY_VALID_ROWS_H_
#define BOWLINE_KERNELS_REGISTRY_VALID_ROWS_H_

// Kernels of the registry that leave rows of their arguments alone, because a count that only the device knows says
// that there are fewer. Of generated code a plan says the same (Kernel.valid_rows in plan.fbs).

#include <cstdint>
#include <string_view>
#include <vector>

namespace bowline::kernels {

struct ValidRows {
  uint32_t count;                   // argument whose last element says how many rows there are, i32
  std::vector<uint32_t> arguments;  // of which rows behind the count are not read
};

// Null: the kernel reads all of its arguments.
const ValidRows* FindValidRows(std::string_view kernel);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_REGISTRY_VALID_ROWS_H_
