#include "runtime/hal/allocation.h"

#include "absl/strings/str_cat.h"

namespace bowline::hal {

absl::Status CheckTransfer(size_t offset, size_t size, size_t bytes) {
  if (offset <= bytes && size <= bytes - offset) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(size, " bytes at offset ", offset, " reach beyond an allocation of ", bytes, " bytes"));
}

}  // namespace bowline::hal
