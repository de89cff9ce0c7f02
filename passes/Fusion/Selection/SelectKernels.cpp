//===- SelectKernels.cpp - Decide for every operation which kernel runs it
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Graph/ValidRows.h"
#include "dialects/Plan/PlanOps.h"
#include "dialects/Stage/StageOps.h"
#include "kernels/registry/valid_rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/UsesInOrder.h"
#include "passes/Fusion/Passes.h"
#include "passes/Fusion/Selection/KernelDeclarations.h"
#include "passes/Fusion/Selection/ValidRows.h"

namespace bowline {
#define GEN_PASS_DEF_SELECTKERNELS
#include "passes/Fusion/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class SelectKernels : public bowline::impl::SelectKernelsBase<SelectKernels> {
public:
  using SelectKernelsBase::SelectKernelsBase;

  void runOnProgram() override {
    ModuleOp module = getOperation();
    FailureOr<ModuleTarget> target = ModuleTarget::of(module);
    if (failed(target))
      return signalPassFailure();
    for (auto function : module.getOps<graph::FuncOp>())
      prepareAll(function);
    for (auto function : module.getOps<graph::FuncOp>())
      repeatConstants(function);
    KernelDeclarations kernels(module, *target, threads);
    for (auto function : module.getOps<graph::FuncOp>())
      for (Operation &op : llvm::make_early_inc_range(function.getBody().front()))
        if (failed(select(&op, kernels)))
          return signalPassFailure();
  }

private:
  void prepareAll(graph::FuncOp function) {
    for (auto op : llvm::to_vector(function.getBody().front().getOps<graph::KernelModel>())) {
      OpBuilder builder(op);
      op.prepareForKernel(builder);
    }
  }

  /// A constant that a kernel writes. Others are stored in the plan.
  static bool isWritten(Operation *op) {
    auto model = dyn_cast<graph::KernelModel>(op);
    return model && op->hasTrait<OpTrait::ConstantLike>() && model.hasKernel();
  }

  /// Filling each place is cheaper than filling one and copying it. Counts of rows stay one value: a kernel that reads
  /// rows of another one leaves the same rows out because both have the same count.
  void repeatConstants(graph::FuncOp function) {
    for (auto constant : llvm::to_vector(function.getBody().front().getOps<arith::ConstantOp>())) {
      if (!isWritten(constant))
        continue;
      if (constant->use_empty()) {
        constant.erase();
        continue;
      }
      SmallVector<OpOperand *> uses = usesInOrder(constant);
      Value count;
      for (OpOperand *use : uses) {
        bool isCount = isRowCount(*use);
        if (isCount && count)
          use->set(count);
        else if (use != uses.front())
          use->set(OpBuilder(use->getOwner()).clone(*constant)->getResult(0));
        if (isCount)
          count = use->get();
      }
    }
  }

  LogicalResult select(Operation *op, KernelDeclarations &kernels) {
    if (graph::isView(op) || isa<graph::ReadOp, graph::WriteOp, graph::ReturnOp>(op) ||
        isa<dist::DistDialect, stage::StageDialect>(op->getDialect()))
      return success(); // the operation computes nothing
    if (op->hasTrait<OpTrait::ConstantLike>() && !isWritten(op))
      return success();
    if (auto fusion = dyn_cast<graph::FusionOp>(op)) {
      if (graph::KernelModel model = graph::kernelThatLeavesRowsOut(fusion))
        return callRegistered(op, model, withoutRows(configOf(model, /*hasEpilogue=*/false)), kernels);
      if (fusion.getEpilogue()) {
        auto kernel = kernels.withLibraryEpilogue(fusion);
        return failed(kernel) ? failure() : call(op, *kernel);
      }
      auto contraction = dyn_cast_or_null<graph::KernelModel>(fusion.getContraction());
      if (!contraction)
        return call(op, kernels.generated(fusion));
      auto kernel = kernels.withEpilogue(fusion, contraction.kernelName(), configOf(contraction, /*hasEpilogue=*/true));
      return failed(kernel) ? failure() : call(op, *kernel);
    }
    auto model = dyn_cast<graph::KernelModel>(op);
    if (!model)
      return op->emitOpError("has no kernel");
    return callRegistered(op, model, configOf(model, /*hasEpilogue=*/false), kernels);
  }

  /// Products of f32 say that products of bf16 may take their place.
  DictionaryAttr configOf(graph::KernelModel model, bool hasEpilogue) {
    DictionaryAttr config = model.kernelConfig(hasEpilogue);
    // By name, as other devices' attributes of a kernel are: operations know nothing of how products are computed.
    if (!splitsF32 || model.kernelName() != "matmul" ||
        !graph::tensorType(model->getOperand(0)).getElementType().isF32())
      return config;
    NamedAttrList attributes(config);
    attributes.set("bf16x6", Builder(&getContext()).getI64IntegerAttr(1));
    return attributes.getDictionary(&getContext());
  }

  /// `op` has the operands and results of the call, and becomes one of the kernel of `model`.
  LogicalResult callRegistered(Operation *op, graph::KernelModel model, DictionaryAttr config,
                               KernelDeclarations &kernels) {
    SmallVector<plan::ArgumentAttr> arguments;
    auto update = dyn_cast<graph::InPlaceUpdate>(op);
    for (OpOperand &operand : op->getOpOperands()) {
      bool isChanged = update && &update.getUpdated() == &operand;
      arguments.push_back(plan::ArgumentAttr::get(
          &getContext(), isChanged ? plan::Access::ReadWrite : plan::Access::Read, operand.get().getType()));
    }
    if (!update) // else the only result is that operand
      for (Type type : op->getResultTypes())
        arguments.push_back(plan::ArgumentAttr::get(&getContext(), plan::Access::Write, type));
    auto kernel = kernels.registered(op, model, config, arguments);
    return failed(kernel) ? failure() : call(op, *kernel);
  }

  static DictionaryAttr withoutRows(DictionaryAttr config) {
    NamedAttrList attributes(config);
    attributes.set(StringRef(kernels::kLeavesRowsOut), Builder(config.getContext()).getI64IntegerAttr(1));
    return attributes.getDictionary(config.getContext());
  }

  LogicalResult call(Operation *op, plan::KernelOp kernel) {
    OpBuilder builder(op);
    auto launch =
        plan::CallOp::create(builder, op->getLoc(), op->getResultTypes(), kernel.getName(), op->getOperands());
    op->replaceAllUsesWith(launch.getResults());
    op->erase();
    return success();
  }
};

} // namespace
