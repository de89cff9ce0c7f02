//===- MemoryLimit.h - Compile within a limit of memory
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_MEMORYLIMIT_H
#define BOWLINE_COMPILER_DRIVER_MEMORYLIMIT_H

#include "compiler/Driver/CompileOptions.h"
#include "compiler/Driver/Diagnostics.h"
#include "compiler/Pipelines/Pipeline.h"

namespace bowline {

/// Runs the phases that \p options name on \p module, and makes the plan if they end with it: `result.plan`, and the
/// remarks of passes. Under a limit of memory, which is one of the whole arena, the backward pass computes as little
/// again as `recompute auto` needs to stay within it. A plan that is larger all the same is no error here: the caller
/// that asked for the limit says so.
absl::Status runWithinMemory(mlir::ModuleOp module, const CompileOptions &options, PipelineOptions pipeline,
                             DiagnosticCollector &diagnostics, CompileResult &result);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_MEMORYLIMIT_H
