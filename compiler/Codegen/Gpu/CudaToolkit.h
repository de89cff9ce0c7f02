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

/// Returns the toolkit's folder: $CUDA_HOME or, if that is not set, $CUDA_PATH; if neither is set, the one with ptxas
/// on the PATH, or /usr/local/cuda. Returns nothing if the folder has no ptxas.
std::optional<std::string> findCudaToolkit();

/// The time limit for ptxas in seconds, far above that of any plan: a ptxas that exceeds it hangs.
inline constexpr unsigned kPtxasSeconds = 1800;

/// Assembles PTX to machine code for `arch` with the toolkit's ptxas. `report`, if not null, receives the lines of
/// ptxas on registers and spills.
llvm::Expected<std::vector<char>> assemblePtx(llvm::StringRef toolkit, llvm::StringRef arch, llvm::StringRef ptx,
                                              std::string *report = nullptr, unsigned seconds = kPtxasSeconds);

/// Returns the path of libdevice: NVIDIA's math functions as LLVM bitcode.
std::string libdevicePath(llvm::StringRef toolkit);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_GPU_CUDATOOLKIT_H
