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

/// The steps of compileModule before it runs a phase.

/// The target that a plan is compiled for, with the options of its code and its threads.
struct ChosenTarget {
  const targets::Target *target = nullptr;
  CodegenOptions codegen;
  int64_t threads = 0; ///< per rank, of a program that says it; otherwise 0
};

/// `options.target` and its level, which are those of \p module if it has them from phases before. Null: it has none
/// yet.
absl::StatusOr<ChosenTarget> chooseTarget(const CompileOptions &options, mlir::ModuleOp module = nullptr);

PipelineOptions makePipelineOptions(const CompileOptions &options, const ChosenTarget &chosen);

/// kInvalidArgument for options that no model can be compiled with; \p isIr: the model is a program of phases before,
/// which has its own sizes.
absl::Status checkOptions(const CompileOptions &options, bool isIr);

/// kInvalidArgument for a size of serving that no plan has.
absl::Status checkServeOptions(const CompileOptions &options);

/// The formats of a GGUF file's tensors that are in blocks of bits, by their keys.
absl::StatusOr<std::map<std::string, ElementType>> storedBlocksOf(const std::string &path);

/// The sizes that a plan for serving has room for. Adds a remark where that is less than \p options ask for.
hf::ServeSizes serveSizesOf(const CompileOptions &options, const hf::ModelConfig &config,
                            std::vector<std::string> &remarks);

/// compileModel of a plan for serving whose cache takes the rest of `options.memoryLimit`, at most that of as many
/// contexts as sequences of a step, and at least one. Where that is above the limit, the plan is returned all the same.
absl::StatusOr<CompileResult> compileServeWithinMemory(const CompileOptions &options);

/// The bytes of a rank's arena of a plan with these options, which is compiled without code. Nothing where they are
/// refused.
std::optional<uint64_t> arenaBytesWith(CompileOptions options);

/// Writes into the module the facts that phases after the input may ask it for.
void describeTarget(mlir::ModuleOp module, const CompileOptions &options, const PipelineOptions &pipeline);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_COMPILESETUP_H
