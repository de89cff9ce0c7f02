//===- VerifyPhase.cpp - The end of each phase
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/VerifyPhase.h"
#include "compiler/Codegen/GenerateKernels.h"
#include "passes/Fusion/Passes.h"
#include "passes/Hoisting/Passes.h"
#include "passes/Import/Passes.h"
#include "passes/Local/Passes.h"
#include "passes/Memory/Passes.h"
#include "passes/Overlap/Passes.h"
#include "passes/Scheduling/Passes.h"
#include "passes/Sharding/Passes.h"
#include "passes/Training/Passes.h"

using namespace mlir;
using namespace bowline;

LogicalResult bowline::verifyPhase(ModuleOp module, Phase phase) {
  switch (phase) {
  case Phase::Input:
    return verifyInput(module);
  case Phase::Graph:
    return verifyGraph(module);
  case Phase::Train:
    return verifyTrain(module);
  case Phase::Shard:
    return verifyShard(module);
  case Phase::Local:
    return verifyLocal(module);
  case Phase::Fuse:
    return verifyFuse(module);
  case Phase::Schedule:
    return verifySchedule(module);
  case Phase::Codegen:
    return verifyCodegen(module);
  case Phase::Hoist:
    return verifyHoist(module);
  case Phase::Overlap:
    return verifyOverlap(module);
  case Phase::Memory:
    return verifyMemory(module);
  case Phase::Plan:
    // compiler/Emit writes the program that `memory` left, and the checker proves the file.
    return success();
  }
  llvm_unreachable("unknown phase");
}

namespace {

class VerifyPhasePass : public PassWrapper<VerifyPhasePass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VerifyPhasePass)

  explicit VerifyPhasePass(Phase phase) : phase(phase) {}

  StringRef getArgument() const override { return "verify-phase"; }
  StringRef getDescription() const override {
    return "Refuse operations that a phase must remove, and record that the phase ended";
  }

  void runOnOperation() override {
    if (failed(verifyPhase(getOperation(), phase)))
      return signalPassFailure();
    setPhase(getOperation(), phase);
    markAllAnalysesPreserved();
  }

private:
  Phase phase;
};

} // namespace

std::unique_ptr<Pass> bowline::createVerifyPhasePass(Phase phase) { return std::make_unique<VerifyPhasePass>(phase); }
