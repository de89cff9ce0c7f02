#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CUDA_TARGET_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CUDA_TARGET_H_

// Decides questions about plans for cards on machines without a card; nothing here needs CUDA.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/hal/device.h"

namespace bowline {

// "sm_90a": code for compute capability 9.0 only, with instructions of its own. "sm_86": code for 8.6 and later 8.x.
struct CudaArch {
  int major = 0, minor = 0;
  bool exact = false;
};

// Returns nothing if the text names no architecture.
std::optional<CudaArch> ParseCudaArch(absl::string_view text);

// Returns kFailedPrecondition, naming the architecture of the plan and that of the card, unless a card of this compute
// capability runs code for the target.
absl::Status CheckCudaTarget(const hal::Target& target, int major, int minor);

// Returns kInvalidArgument unless the bytes are an ELF file whose headers and sections lie within them. The check is
// necessary because the loader of CUDA takes an address without a length.
absl::Status CheckCubin(absl::Span<const uint8_t> image);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CUDA_TARGET_H_
