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

  explicit OnEachRank(std::function<std::unique_ptr<Pass>()> create) : create(std::move(create)) {}

  StringRef getArgument() const override { return "on-each-rank"; }
  StringRef getDescription() const override { return "Run a pass on the program of each rank of a pipeline"; }

  void getDependentDialects(DialectRegistry &registry) const override { create()->getDependentDialects(registry); }

  void runOnOperation() override {
    SmallVector<ModuleOp> programs = llvm::to_vector(getOperation().getOps<ModuleOp>());
    if (programs.empty())
      programs.push_back(getOperation());
    for (ModuleOp program : programs) {
      OpPassManager passes(ModuleOp::getOperationName());
      passes.addPass(create());
      if (failed(runPipeline(passes, program)))
        return signalPassFailure();
    }
  }

private:
  std::function<std::unique_ptr<Pass>()> create;
};

} // namespace

std::unique_ptr<Pass> bowline::createOnEachRank(std::function<std::unique_ptr<Pass>()> create) {
  return std::make_unique<OnEachRank>(std::move(create));
}
