//===- DividedProgram.h - A program before and after it was divided
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_PLACEMENT_DIVIDEDPROGRAM_H
#define BOWLINE_TEST_UNIT_PLACEMENT_DIVIDEDPROGRAM_H

#include "compiler/Pipelines/VerifyPhase.h"
#include "compiler/Placement/VerifyPlacement.h"
#include "mlir/Pass/PassManager.h"
#include "test/Unit/Equivalence/SmallPipelines.h"

namespace bowline::test {

class DividedProgram : public SmallPipelines {
 protected:
  /// Runs the steps of `options` from the program on whole tensors up to the roles of ranks.
  void divide(mlir::OwningOpRef<mlir::ModuleOp> module, const PipelineOptions& options) {
    divided = std::move(module);
    auto run = [&](llvm::function_ref<void(mlir::PassManager&)> add) {
      mlir::PassManager manager(&context);
      add(manager);
      return mlir::succeeded(manager.run(*divided));
    };
    std::vector<Step> steps = stepsToRun(options, Phase::Input, Phase::Local);
    for (const PhaseInfo& info : allPhases()) {
      if (info.phase == Phase::Shard)
        ASSERT_TRUE(run([&](auto& manager) { manager.addPass(makeRecordWhole(record)); }));
      for (const Step& step : steps) {
        if (step.phase != info.phase) continue;
        ASSERT_TRUE(run([&](auto& manager) { addStep(manager, step); })) << step.name.str();
        if (step.name == "apply-strategy")
          ASSERT_TRUE(run([&](auto& manager) { manager.addPass(makeRecordWhole(record)); }));
        if (step.name == "nest-program") return;
      }
      ASSERT_TRUE(run([&](auto& manager) { manager.addPass(createVerifyPhasePass(info.phase)); }));
    }
  }

  /// The checker's message on `module`; empty where it has none.
  std::string problemOf(mlir::ModuleOp module) {
    std::string error;
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic& diagnostic) {
      if (error.empty() && diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error) error = diagnostic.str();
      return mlir::success();
    });
    PlacementChecker checker(record->whole->clone());
    bool isRight = mlir::succeeded(checker.check(module));
    summary = checker.summary();
    EXPECT_EQ(isRight, error.empty());
    return error;
  }

  std::shared_ptr<PlacementRecord> record = std::make_shared<PlacementRecord>();
  mlir::OwningOpRef<mlir::ModuleOp> divided;
  PlacementChecker::Summary summary;
};

}  // namespace bowline::test

#endif  // BOWLINE_TEST_UNIT_PLACEMENT_DIVIDEDPROGRAM_H
