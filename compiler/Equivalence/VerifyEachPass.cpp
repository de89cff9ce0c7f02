//===- VerifyEachPass.cpp - Equivalence for a tool that runs any passes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Equivalence/VerifyEachPass.h"
#include "compiler/Equivalence/EquivalenceChecker.h"
#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

#include <utility>
#include <vector>

using namespace mlir;
using namespace bowline;

namespace {

/// Findings of the instrumentation, which cannot fail a pipeline. The pass FinalVerdict at the end fails it.
struct Progress {
  EquivalenceChecker checker;
  bool began = false, failed = false;
  std::shared_ptr<bool> isRefuted = std::make_shared<bool>(false);
};

class EachPass final : public PassInstrumentation {
public:
  explicit EachPass(std::shared_ptr<Progress> progress) : progress(std::move(progress)) {}

  void runBeforePass(Pass *, Operation *op) override {
    if (progress->began)
      return;
    progress->began = true;
    progress->failed = failed(progress->checker.begin(moduleOf(op)));
    if (StringRef unmeant = progress->checker.summary().unmeant; !unmeant.empty())
      emitRemark(op->getLoc()) << "passes are compared in f64 alone: '" << unmeant
                               << "' has no meaning modulo a prime, so that a difference below rounding is not seen";
  }

  void runAfterPass(Pass *pass, Operation *op) override {
    if (progress->failed)
      return;
    StringRef name = pass->getArgument().empty() ? pass->getName() : pass->getArgument();
    if (isOneOfSeveralRoles(op)) {
      if (!llvm::is_contained(onRoles, name))
        onRoles.push_back(name.str());
      return;
    }
    std::string step = onRoles.empty() ? name.str() : llvm::join(std::exchange(onRoles, {}), ", ");
    progress->failed = failed(progress->checker.check(step, moduleOf(op)));
    *progress->isRefuted = progress->checker.isRefuted();
  }

private:
  /// Whether `op` is in one of several roles. A role that is further than the others cannot run with them: they are
  /// compared when all are through.
  static bool isOneOfSeveralRoles(Operation *op) {
    auto around = op->getParentOfType<ModuleOp>();
    return around && !llvm::hasSingleElement(around.getOps<ModuleOp>());
  }

  /// The outermost module around `op`.
  static ModuleOp moduleOf(Operation *op) {
    while (Operation *parent = op->getParentOp())
      op = parent;
    return cast<ModuleOp>(op);
  }

  std::shared_ptr<Progress> progress;
  /// Passes that ran on roles since the last comparison.
  std::vector<std::string> onRoles;
};

class FinalVerdict final : public PassWrapper<FinalVerdict, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FinalVerdict)

  explicit FinalVerdict(std::shared_ptr<Progress> progress) : progress(std::move(progress)) {}

  StringRef getArgument() const override { return "equivalence-verdict"; }
  StringRef getDescription() const override { return "Fail where a pass before changed what is computed"; }

  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (progress->failed)
      signalPassFailure();
  }

private:
  std::shared_ptr<Progress> progress;
};

} // namespace

std::shared_ptr<const bool> bowline::verifyEachPass(PassManager &manager) {
  manager.getContext()->disableMultithreading();
  // For the mesh that programs run on, and for the operations that kernels stand for.
  manager.getContext()
      ->loadDialect<dist::DistDialect, graph::GraphDialect, arith::ArithDialect, func::FuncDialect,
                    math::MathDialect>();
  auto progress = std::make_shared<Progress>();
  manager.addPass(std::make_unique<FinalVerdict>(progress));
  manager.addInstrumentation(std::make_unique<EachPass>(progress));
  return progress->isRefuted;
}
