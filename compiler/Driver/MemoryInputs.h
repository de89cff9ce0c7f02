//===- MemoryInputs.h - Inputs of the formulas of memory
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_MEMORYINPUTS_H
#define BOWLINE_COMPILER_DRIVER_MEMORYINPUTS_H

#include "compiler/Driver/MemoryFormula.h"
#include "frontends/hf/ModelConfig.h"
#include "passes/Strategy/Strategy.h"
#include "runtime/base/status.h"

namespace bowline {

struct CompileOptions;

/// Returns the inputs of the formulas; \p recompute is the strategy's choice. Returns kUnimplemented where
/// docs/memory.md has no formula for the model or for a choice; the message names it as the end of a sentence.
absl::StatusOr<MemoryInputs> memoryInputsOf(const hf::ModelConfig &config, const Strategy &strategy,
                                            const CompileOptions &options, llvm::StringRef recompute);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_MEMORYINPUTS_H
