//===- DeviceCode.h - properties in machine code for GPUs ------*- C++ -*-===//

#ifndef BOWLINE_CHECKER_DEVICECODE_H
#define BOWLINE_CHECKER_DEVICECODE_H

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstdint>
#include <map>
#include <string>

namespace bowline {

/// The resources that a launch of a device function takes.
struct DeviceFunction {
  uint32_t registers = 0;   ///< per thread, of 32 bits each
  uint32_t stackBytes = 0;  ///< local memory per thread: arrays, and registers that were spilled
  uint64_t sharedBytes = 0; ///< per block; from sm_90 on, 1024 of them are the system's
};

/// The functions of a cubin, by symbol. Returns kInvalidArgument where `image` is no 64-bit ELF for NVIDIA's GPUs, or a
/// table of it lies outside of it. An image may be anything: nothing outside of it is read, and time grows with its
/// size.
absl::StatusOr<std::map<std::string, DeviceFunction>> readCubin(absl::Span<const uint8_t> image);

} // namespace bowline

#endif // BOWLINE_CHECKER_DEVICECODE_H
