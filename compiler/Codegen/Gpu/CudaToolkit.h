//===- Gpu/CudaToolkit.h - Tools and files of a CUDA toolkit that compilation uses
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_GPU_CUDATOOLKIT_H
#define BOWLINE_COMPILER_CODEGEN_GPU_CUDATOOLKIT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace bowline::codegen {

/// The folder of the toolkit: $CUDA_HOME or $CUDA_PATH, the first that is set; else where ptxas on the PATH is, or
/// /usr/local/cuda. None where it has no ptxas.
std::optional<std::string> findCudaToolkit();

/// The time limit for ptxas in seconds. No plan takes as long: a ptxas that has not ended by then hangs.
inline constexpr unsigned kPtxasSeconds = 1800;

/// Assembles PTX to machine code for `arch` with the toolkit's ptxas. `report` receives the lines of ptxas on registers
/// and spills.
llvm::Expected<std::vector<char>> assemblePtx(llvm::StringRef toolkit, llvm::StringRef arch, llvm::StringRef ptx,
                                              std::string *report = nullptr, unsigned seconds = kPtxasSeconds);

/// The path of libdevice, NVIDIA's f64 functions as LLVM bitcode.
std::string libdevicePath(llvm::StringRef toolkit);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_GPU_CUDATOOLKIT_H
