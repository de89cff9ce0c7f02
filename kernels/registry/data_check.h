#ifndef BOWLINE_KERNELS_REGISTRY_DATA_CHECK_H_
#define BOWLINE_KERNELS_REGISTRY_DATA_CHECK_H_

// Kernels whose data say where they read and write. They replace a wrong value by the nearest valid one, for a kernel
// cannot fail; a kernel of its own that is launched before them says so in a word that is read after the run.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/registry/registry.h"

namespace bowline::kernels {

// The argument that the kernel writes.
inline constexpr size_t kResult = SIZE_MAX;

// The names of the checks.
inline constexpr std::string_view kCheckOffsets = "check_offsets", kCheckIds = "check_ids";

struct DataCheck {
  std::string_view kernel;  // of these data
  size_t argument;          // which of its arguments they are
  size_t rows;              // the argument whose first dimension says what they may be at most, or kResult
  // True if data are right that lie below the number of rows and not below 0. A caller who knows that they do, as of a
  // port with a limit, needs no check then.
  bool is_row;
};

// The number of words that a check writes: i32 that are 0 or become 1 + the index of the first wrong one of the data,
// and what that is. They are never cleared.
inline constexpr int64_t kFaultWords = 2;

// An attribute of kernels whose data are known to be right: there is no check.
inline constexpr std::string_view kInRange = "in_range";

// Null: the kernel's data cannot be wrong.
const DataCheck* FindDataCheck(std::string_view kernel);

// Returns how many rows there are for the data of a kernel with such, of any signature that it accepts.
int64_t RowsOfCheck(const DataCheck& check, const Signature& signature);

// The signature of the check. Arguments: the data, which are read, and the fault.
Signature SignatureOfCheck(const DataCheck& check, const Signature& signature);

// Returns whether a kernel is such a check.
bool IsDataCheck(std::string_view kernel);

// A sentence on the two words of a fault, of which the first is not 0.
std::string DescribeFault(std::string_view check, int32_t place, int32_t value);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_REGISTRY_DATA_CHECK_H_
