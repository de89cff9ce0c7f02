//===- OnEachRank.cpp - A pass for the program of each rank of a pipeline
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/OnEachRank.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace bowline;

namespace {

class OnEachRank : public PassWrapper<OnEachRank, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(OnEachRank)

  explicit OnEachRank(std::unique_ptr<Pass> pass) { passes.addPass(std::move(pass)); }

  StringRef getArgument() const override { return "on-each-rank"; }
  StringRef getDescription() const override { return "Run a pass on the program of each rank of a pipeline"; }

  void getDependentDialects(DialectRegistry &registry) const override { passes.getDependentDialects(registry); }

  void runOnOperation() override {
    SmallVector<ModuleOp> programs = llvm::to_vector(getOperation().getOps<ModuleOp>());
    if (programs.empty())
      programs.push_back(getOperation());
    for (ModuleOp program : programs)
      if (failed(runPipeline(passes, program)))
        return signalPassFailure();
  }

private:
  /// As old as this pass: MLIR knows by their addresses which passes took how long.
  OpPassManager passes{ModuleOp::getOperationName()};
};

} // namespace

std::unique_ptr<Pass> bowline::createOnEachRank(std::unique_ptr<Pass> pass) {
  return std::make_unique<OnEachRank>(std::move(pass));
}
