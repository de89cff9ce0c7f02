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

/// A set of instructions: a level of the x86-64 psABI, and the extensions beyond it.
struct TargetCpu {
  /// The name that a plan records: the level, then "+feature" for each feature. "+amx" changes no generated code:
  /// kernels of the registry get workspace to use it, and do without where it is not.
  std::string name;
  /// "x86-64-v2", "x86-64-v3" or "x86-64-v4".
  std::string level;
  /// The width of the vector registers in bits.
  int vectorBits = 0;
  /// Whether the processor has AVX512-BF16: f32 is rounded to bf16 by one instruction, which takes subnormal numbers
  /// for zero.
  bool hasBf16 = false;

  /// Whether it has instructions that convert between f16 and f32 (F16C).
  bool hasF16() const { return level != "x86-64-v2"; }

  /// Features beyond the level, as LLVM writes them.
  llvm::StringRef features() const { return hasBf16 ? "+avx512bf16" : ""; }
};

/// The processor called `name`, where "native" is that of this machine, up to CpuLimit(). kInvalidArgument where no
/// level has the name, or that limit is none.
absl::StatusOr<TargetCpu> targetCpu(llvm::StringRef name);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_TARGETCPU_H
