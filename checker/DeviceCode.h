//===- DeviceCode.h - properties in machine code for GPUs ------*- C++ -*-===//

#ifndef BOWLINE_CHECKER_DEVICECODE_H
#define BOWLINE_CHECKER_DEVICECODE_H

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstdint>
#include <map>
#include <string>

namespace bowline {

/// The resources that one launch of a device function takes.
struct DeviceFunction {
  uint32_t registers = 0;   ///< 32-bit registers per thread
  uint32_t stackBytes = 0;  ///< local memory per thread: arrays and spilled registers
  uint64_t sharedBytes = 0; ///< shared memory per block; from sm_90 on this includes 1024 bytes of the system
};

/// Returns the functions of a cubin, keyed by symbol. `image` may be arbitrary bytes: nothing outside of it is read,
/// and the time grows with its size. Returns kInvalidArgument where it is no 64-bit ELF for NVIDIA GPUs, or one of its
/// tables does not lie inside it.
absl::StatusOr<std::map<std::string, DeviceFunction>> readCubin(absl::Span<const uint8_t> image);

} // namespace bowline

#endif // BOWLINE_CHECKER_DEVICECODE_H
