//===- CompileSetup.h - From compile options to a module and its pipeline
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_COMPILESETUP_H
#define BOWLINE_COMPILER_DRIVER_COMPILESETUP_H

#include "compiler/Driver/CompileOptions.h"
#include "compiler/Driver/Diagnostics.h"
#include "compiler/Driver/StrategySource.h"
#include "compiler/Pipelines/Pipeline.h"
#include "frontends/hf/ModelConfig.h"
#include "frontends/hf/PagedCache.h"

namespace bowline {

/// The parts of compileModule that come before its phases.

/// The target of a plan, its code generation options, and its threads.
struct ChosenTarget {
  const targets::Target *target = nullptr;
  CodegenOptions codegen;
  int64_t threads = 0; ///< per rank, if the IR states it; otherwise 0
};

/// Returns the target and the level of `options`. If \p module has them from earlier phases, returns those. \p module
/// may be null.
absl::StatusOr<ChosenTarget> chooseTarget(const CompileOptions &options, mlir::ModuleOp module = nullptr);

PipelineOptions makePipelineOptions(const CompileOptions &options, const ChosenTarget &chosen);

/// Returns kInvalidArgument for options that suit no model. \p isIr: the model is IR after some
/// phase, which states its own sizes.
absl::Status checkOptions(const CompileOptions &options, bool isIr);

/// Returns kInvalidArgument for sizes of serving outside their ranges.
absl::Status checkServeOptions(const CompileOptions &options);

/// Returns the block formats of a GGUF file's quantised tensors, by key.
absl::StatusOr<std::map<std::string, ElementType>> storedBlocksOf(const std::string &path);

/// Returns the sizes of a plan for serving. Adds a remark where the cache is smaller than \p options ask for.
hf::ServeSizes serveSizesOf(const CompileOptions &options, const hf::ModelConfig &config,
                            std::vector<std::string> &remarks);

/// Compiles a plan for serving whose cache fills `options.memoryLimit`, with between one full context and one for each
/// sequence of a step. If even the smallest cache exceeds the limit, returns that plan without an error.
absl::StatusOr<CompileResult> compileServeWithinMemory(const CompileOptions &options);

/// Returns the arena size in bytes of the plan with these options, which it compiles without code; nothing if the
/// options are refused.
std::optional<uint64_t> arenaBytesWith(CompileOptions options);

/// Writes attributes about the target into the module, from which passes after the input phase read them.
void describeTarget(mlir::ModuleOp module, const CompileOptions &options, const PipelineOptions &pipeline);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_COMPILESETUP_H
