#ifndef BOWLINE_KERNELS_REGISTRY_DATA_CHECK_H_
#define BOWLINE_KERNELS_REGISTRY_DATA_CHECK_H_

// Some kernels read offsets or row numbers from their arguments. A kernel cannot fail, so it replaces an invalid value
// by the nearest valid one. A check, launched before the kernel, records the fault in words that callers read later.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/registry/registry.h"

namespace bowline::kernels {

// Stands for the index of the argument that the kernel writes.
inline constexpr size_t kResult = SIZE_MAX;

// The names of the checks.
inline constexpr std::string_view kCheckOffsets = "check_offsets", kCheckIds = "check_ids";

struct DataCheck {
  std::string_view kernel;  // the check's kernel
  size_t argument;          // index of the argument to check
  size_t rows;              // index of the argument whose first dimension is the exclusive upper limit, or kResult
  // True if every value in [0, number of rows) is valid. A caller that knows this range already, for example from the
  // limit of a port, needs no check.
  bool is_row;
};

// The number of i32 words that a check writes. Word 0 is 0, or 1 + the index of the first invalid element. Word 1 is
// that element's value. A check never clears them.
inline constexpr int64_t kFaultWords = 2;

// The attribute of a kernel whose data are known to be valid. Such a kernel needs no check.
inline constexpr std::string_view kInRange = "in_range";

// Returns null if the kernel's data cannot be invalid.
const DataCheck* FindDataCheck(std::string_view kernel);

// Returns the number of rows that `check` allows for a kernel with this signature, which the kernel must accept.
int64_t RowsOfCheck(const DataCheck& check, const Signature& signature);

// Returns the signature of the check. Its arguments are the data, which it reads, and the fault words.
Signature SignatureOfCheck(const DataCheck& check, const Signature& signature);

// Returns whether a kernel is such a check.
bool IsDataCheck(std::string_view kernel);

// Returns a sentence about the two words of a fault; `place` is word 0 and not 0, `value` is word 1.
std::string DescribeFault(std::string_view check, int32_t place, int32_t value);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_REGISTRY_DATA_CHECK_H_
