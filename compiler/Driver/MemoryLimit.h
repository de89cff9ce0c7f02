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

/// Runs the phases from `options.from` to `options.to` on \p module. If they end with Phase::Plan, sets
/// `result.plan` and adds remarks of passes. If `options.memoryLimit` limits the arena and recompute is auto, picks
/// the least recomputation that meets the limit. A plan that still exceeds the limit is no error here: the caller
/// reports that.
absl::Status runWithinMemory(mlir::ModuleOp module, const CompileOptions &options, PipelineOptions pipeline,
                             DiagnosticCollector &diagnostics, CompileResult &result);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_MEMORYLIMIT_H
