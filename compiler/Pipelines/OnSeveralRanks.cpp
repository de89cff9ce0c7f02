//===- OnSeveralRanks.cpp - A pass for programs of several ranks alone
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/OnSeveralRanks.h"
#include "dialects/Dist/DistOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace bowline;

namespace {

class OnSeveralRanks : public PassWrapper<OnSeveralRanks, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(OnSeveralRanks)

  explicit OnSeveralRanks(std::function<std::unique_ptr<Pass>()> create) : create(std::move(create)) {}

  StringRef getArgument() const override { return "on-several-ranks"; }
  StringRef getDescription() const override { return "Run a pass where the mesh has more than one rank"; }

  void getDependentDialects(DialectRegistry &registry) const override { create()->getDependentDialects(registry); }

  void runOnOperation() override {
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    if (!mesh || mesh.getRankCount() == 1)
      return markAllAnalysesPreserved();
    OpPassManager passes(ModuleOp::getOperationName());
    passes.addPass(create());
    if (failed(runPipeline(passes, getOperation())))
      signalPassFailure();
  }

private:
  std::function<std::unique_ptr<Pass>()> create;
};

} // namespace

std::unique_ptr<Pass> bowline::createOnSeveralRanks(std::function<std::unique_ptr<Pass>()> create) {
  return std::make_unique<OnSeveralRanks>(std::move(create));
}
