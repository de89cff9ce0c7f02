//===- TargetCpu.h - Processors that code is generated for
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_TARGETCPU_H
#define BOWLINE_COMPILER_CODEGEN_TARGETCPU_H

#include "absl/status/statusor.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace bowline::codegen {

/// An instruction set of a CPU: a level of the x86-64 psABI, and extensions beyond it.
struct TargetCpu {
  /// The name in plans: the level, then "+feature" for each feature. "+amx" does not change generated code; it gives
  /// registered kernels workspace for AMX, and they also run without AMX.
  std::string name;
  /// "x86-64-v2", "x86-64-v3" or "x86-64-v4".
  std::string level;
  /// The width of the vector registers in bits.
  int vectorBits = 0;
  /// Whether the CPU has AVX512-BF16, whose instruction rounds f32 to bf16 and
  /// treats subnormal numbers as zero.
  bool hasBf16 = false;

  /// Returns whether the CPU has instructions that convert between f16 and f32 (F16C).
  bool hasF16() const { return level != "x86-64-v2"; }

  /// Returns the features beyond the level, in LLVM's syntax.
  llvm::StringRef features() const { return hasBf16 ? "+avx512bf16" : ""; }
};

/// Returns the CPU called `name`; "native" is that of this machine, limited by CpuLimit(). Returns kInvalidArgument if
/// no level has the name, or if the limit is invalid.
absl::StatusOr<TargetCpu> targetCpu(llvm::StringRef name);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_TARGETCPU_H
