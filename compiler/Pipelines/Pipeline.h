//===- Pipeline.h - The steps of a compilation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_PIPELINES_PIPELINE_H
#define BOWLINE_COMPILER_PIPELINES_PIPELINE_H

#include "compiler/Codegen/Backend.h"
#include "compiler/Placement/VerifyPlacement.h"
#include "dialects/Program/Phase.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/Training/Passes.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace bowline {

/// After which passes the program is printed to stderr.
enum class IrPrinting { None, AfterAll, AfterChange };

/// Choices on the program and its machine. The module's `dist.strategy` says how the machine computes it.
struct PipelineOptions {
  bool training = true;
  int64_t seed = 0;
  int64_t threads = 1;
  std::string dtype = "f32"; // type of computed values (types/computed_types.h)
  /// For recomputation that chooses by itself: bytes of everything in the arena, estimated; 0: no target.
  int64_t memoryTarget = 0;
  /// Bytes of the arena that no optimisation may exceed; 0: no limit.
  int64_t memoryLimit = 0;
  InsertOptimizerOptions optimizer;
  /// For the cost model: "[AXIS:]LINK" each, with semicolons between.
  std::string links;
  const targets::Target *target = &targets::DefaultTarget();
  CodegenOptions codegen = defaultCodegen(targets::DefaultTarget());
  /// Steps that wait for large tensors act on any: for programs whose sizes were shrunk, to be interpreted.
  bool hasSmallSizes = false;
  /// Six products of bf16 may take the place of one of f32.
  bool splitsF32 = false;
  /// Weights are read in place from memory of the caller.
  bool mapsWeights = false;
  /// Names of optimisation steps to leave out.
  std::set<std::string> disabledSteps;
  /// Print how long each pass took to stderr.
  bool timing = false;
  IrPrinting irPrinting = IrPrinting::None;
  /// Relates the programs of the ranks to the program on whole tensors, at its size; null: does not.
  std::shared_ptr<PlacementRecord> placement;
};

/// One step of the pipeline: a pass with its reason.
struct Step {
  llvm::StringRef name;
  Phase phase;
  llvm::StringRef reason;
  /// An optimisation: the program is correct without it, so that it may be switched off.
  bool optional;
  std::function<std::unique_ptr<mlir::Pass>()> create;
  /// Runs on the module of each role (passes/Analysis/Roles.h) and not on the one around them.
  bool isOnRoles = false;
};

/// All steps in order: the table of contents of the compiler.
std::vector<Step> pipelineSteps(const PipelineOptions &options);

/// The steps of the phases after `from` up to and including `to` that have a pass and are not switched off.
std::vector<Step> stepsToRun(const PipelineOptions &options, Phase from, Phase to);

/// Adds the pass of a step to the passes of a module in which programs are nested when the step says so.
void addStep(mlir::OpPassManager &manager, const Step &step);

/// Runs the steps of the phases after `from` up to and including `to`, each phase with its verifier at the end. Fails
/// with diagnostics.
llvm::LogicalResult runPhases(mlir::ModuleOp module, const PipelineOptions &options, Phase from, Phase to);

} // namespace bowline

#endif // BOWLINE_COMPILER_PIPELINES_PIPELINE_H
