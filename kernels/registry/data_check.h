#ifndef BOWLINE_KERNELS_REGISTRY_DATA_CHECK_H_
#define BOWLINE_KERNELS_REGISTRY_DATA_CHECK_H_

// Kernels whose data say where they read and write. They count what is wrong as the nearest that is right, for a kernel
// cannot fail; a kernel of its own that is launched before them says so in a word that is read after the run.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/registry/registry.h"

namespace bowline::kernels {

struct DataCheck {
  std::string_view kernel;  // of these data
  size_t argument;          // which of its arguments they are
};

// Null: the kernel's data cannot be wrong, or whoever writes them checks them.
const DataCheck* FindDataCheck(std::string_view kernel);

// Of the kernel with such data, of any signature that it accepts: that of its check. Arguments: the data, which are
// read, and the fault, one i32 that is 0 or becomes what DescribeFault tells, and is never cleared.
Signature SignatureOfCheck(const DataCheck& check, const Signature& signature);

// Whether a kernel is such a check.
bool IsDataCheck(std::string_view kernel);

// A sentence on a fault of a check that is not 0.
std::string DescribeFault(std::string_view check, int32_t fault);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_REGISTRY_DATA_CHECK_H_
