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

/// Selects the passes after which the program is printed to stderr.
enum class IrPrinting { None, AfterAll, AfterChange };

/// Choices about the program and the machine. How the program is parallelised is in the module's `dist.strategy`.
struct PipelineOptions {
  bool training = true;
  int64_t seed = 0;
  int64_t threads = 1;
  std::string dtype = "f32"; // type of computed values (types/computed_types.h)
  /// With recompute auto: the arena size in bytes, estimated, that recomputation should reach; 0: no target.
  int64_t memoryTarget = 0;
  /// Size in bytes of the arena that optimisations must not exceed; 0: no limit.
  int64_t memoryLimit = 0;
  InsertOptimizerOptions optimizer;
  /// Links of the cost model, each "[AXIS:]LINK", separated by semicolons.
  std::string links;
  const targets::Target *target = &targets::DefaultTarget();
  CodegenOptions codegen = defaultCodegen(targets::DefaultTarget());
  /// Lets steps with a minimum size for tensors act on all sizes: for shrunk programs that are interpreted.
  bool hasSmallSizes = false;
  /// Allows six bf16 products in place of one f32 product.
  bool splitsF32 = false;
  /// Kernels read weights in place from memory of the caller.
  bool mapsWeights = false;
  /// Names of optional steps to skip.
  std::set<std::string> disabledSteps;
  /// Prints the time of each pass to stderr.
  bool timing = false;
  IrPrinting irPrinting = IrPrinting::None;
  /// If set: checks that the programs of the ranks compute the program on whole tensors (VerifyPlacement.h).
  std::shared_ptr<PlacementRecord> placement;
};

/// One step of the pipeline: a pass, with the reason why it is there.
struct Step {
  llvm::StringRef name;
  Phase phase;
  llvm::StringRef reason;
  /// The step is an optimisation: programs are correct without it, so that users may disable it.
  bool optional;
  std::function<std::unique_ptr<mlir::Pass>()> create;
  /// The pass runs on the module of each role (passes/Analysis/Roles.h), not on the module around them.
  bool isOnRoles = false;
};

/// Returns all steps in order.
std::vector<Step> pipelineSteps(const PipelineOptions &options);

/// Returns the steps of the phases after `from`, up to and including `to`, that have a pass and are not disabled.
std::vector<Step> stepsToRun(const PipelineOptions &options, Phase from, Phase to);

/// Adds the pass of a step to `manager`, nested in the modules of the roles if isOnRoles.
void addStep(mlir::OpPassManager &manager, const Step &step);

/// Runs the steps of the phases after `from` up to and including `to`. After each phase it runs the verifier of that
/// phase. Fails with diagnostics.
llvm::LogicalResult runPhases(mlir::ModuleOp module, const PipelineOptions &options, Phase from, Phase to);

} // namespace bowline

#endif // BOWLINE_COMPILER_PIPELINES_PIPELINE_H
