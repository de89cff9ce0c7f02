//===- PhaseRules.cpp - Rules that verifiers of phases share
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/PhaseRules.h"
#include "dialects/Dist/DistOps.h"
#include "dialects/Plan/PlanOps.h"
#include "dialects/Program/ElementTypes.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace bowline;

LogicalResult bowline::verifyAll(ModuleOp module, function_ref<LogicalResult(Operation *)> rule) {
  WalkResult result = module.walk<WalkOrder::PreOrder>([&](Operation *op) { return WalkResult(rule(op)); });
  return failure(result.wasInterrupted());
}

LogicalResult bowline::refuse(Operation *op, Phase phase, StringRef why) {
  return op->emitOpError() << "must not be there after phase '" << nameOf(phase) << "': " << why;
}

bool bowline::isInDialect(Operation *op, StringRef dialect) { return op->getName().getDialectNamespace() == dialect; }

bool bowline::isStrategy(Operation *op) {
  return isa<dist::StrategyOp>(op) || isa_and_nonnull<dist::StrategyOp>(op->getParentOp());
}

bool bowline::isCommunication(Operation *op) {
  auto collective = dyn_cast<dist::Collective>(op);
  return collective ? collective.getForm().isContiguous()
                    : isa<dist::CoordinateOp, stage::SendOp, stage::ReceiveOp>(op);
}

bool bowline::isKernelBody(Operation *op) { return isa<func::FuncOp>(op) || op->getParentOfType<func::FuncOp>(); }

bool bowline::isPlanLevel(Operation *op) {
  return isa<ModuleOp, dist::MeshOp>(op) || isStrategy(op) || (isInDialect(op, "plan") && !isa<plan::CallOp>(op));
}

bool bowline::hasSeveralRanks(Operation *op) {
  dist::MeshOp mesh = dist::MeshOp::of(op);
  return mesh && mesh.getRankCount() > 1;
}

std::optional<unsigned> bowline::findArgumentWithout(graph::FuncOp function, StringRef attribute) {
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (!function.getArgAttr(index, attribute))
      return index;
  return std::nullopt;
}

/// Functions hold tensor operations with reference semantics and accesses of variables.
static bool isGraphLevel(Operation *op) {
  return isa<ModuleOp, dist::MeshOp, plan::AttachmentOp>(op) || isStrategy(op) || isInDialect(op, "graph") ||
         isInDialect(op, "stage") || isInDialect(op, "arith") || isInDialect(op, "math");
}

/// Returns whether graph's own operations take elements of the type; upstream ones take more.
static bool isGraphElement(ElementType type) {
  return IsFloat(type) || type == ElementType::kBool || type == ElementType::kI32 || type == ElementType::kI64 ||
         type == ElementType::kU8;
}

static bool isGraphTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || llvm::is_contained(tensor.getShape(), 0))
    return false;
  std::optional<ElementType> element = elementTypeOf(tensor.getElementType());
  return element && isGraphElement(*element);
}

LogicalResult bowline::verifyGraphLevel(Operation *op, Phase phase) {
  if (!isGraphLevel(op) || isa<graph::FusionOp>(op))
    return refuse(op, phase, "only graph, arith and math operations on global tensors have a meaning here");
  if (!llvm::all_of(op->getResultTypes(), isGraphTensor))
    return refuse(op, phase,
                  "values are tensors of static shape without zeros, of one of " + mlirNamesOf(isGraphElement));
  if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && !isa<DenseElementsAttr>(constant.getValue()))
    return refuse(op, phase, "constants are written out as 'dense<...>'");
  return success();
}

LogicalResult bowline::verifyPlanLevel(Operation *op, Phase phase) {
  return isPlanLevel(op) ? success() : refuse(op, phase, "only the plan dialect is left");
}

LogicalResult bowline::verifyEntries(ModuleOp module) {
  if (!module.getOps<graph::EntryOp>().empty())
    return success();
  return module.emitError(
      "nothing can be run: the module needs a graph.entry, or a function that computes the loss, generates "
      "text, or is a step of serving: 'graph.func loss @name', 'graph.func generate @name', 'graph.func step "
      "@name'");
}

LogicalResult bowline::verifyEntriesOfRoles(ModuleOp module) {
  return success(llvm::all_of(module.getOps<ModuleOp>(), [](ModuleOp role) { return succeeded(verifyEntries(role)); }));
}
