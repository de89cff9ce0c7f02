//===- VerifyPhase.cpp - What must be gone after each phase
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/VerifyPhase.h"
#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Plan/PlanOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace bowline;

//===----------------------------------------------------------------------===//
// Rules: an operation that a phase does not allow, and why.
//===----------------------------------------------------------------------===//

static bool isIn(Operation *op, StringRef dialect) { return op->getName().getDialectNamespace() == dialect; }

/// Before kernels are selected, functions hold tensor operations with reference semantics and variable accesses.
static bool isGraphLevel(Operation *op) {
  return isa<ModuleOp, dist::MeshOp, plan::AttachmentOp>(op) || isIn(op, "graph") || isIn(op, "arith") ||
         isIn(op, "math");
}

/// The types that graph's own operations take; upstream ones take more.
static bool isGraphTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || llvm::is_contained(tensor.getShape(), 0))
    return false;
  Type element = tensor.getElementType();
  return element.isF32() || element.isF64() || element.isBF16() || element.isF16() || element.isInteger(1) ||
         element.isInteger(32) || element.isInteger(64);
}

/// A kernel's body that waits for code generation.
static bool isKernelBody(Operation *op) { return isa<func::FuncOp>(op) || op->getParentOfType<func::FuncOp>(); }

static bool isFusedLevel(Operation *op) {
  return isKernelBody(op) || isa<ModuleOp, dist::MeshOp, graph::FuncOp, graph::ReturnOp, graph::EntryOp, graph::ParamOp,
                                 graph::StateOp, graph::ReadOp, graph::WriteOp, graph::ReshapeOp, arith::ConstantOp,
                                 plan::CallOp, plan::KernelOp, plan::AttachmentOp>(op);
}

static bool isPlanLevel(Operation *op) {
  return isa<ModuleOp, dist::MeshOp>(op) || (isIn(op, "plan") && !isa<plan::CallOp>(op));
}

static LogicalResult refuse(Operation *op, Phase phase, StringRef why) {
  return op->emitOpError() << "must not be there after phase '" << nameOf(phase) << "': " << why;
}

static LogicalResult verifyOperation(Operation *op, Phase phase) {
  switch (phase) {
  case Phase::Input:
  case Phase::Graph:
  case Phase::Train:
    if (!isGraphLevel(op) || isa<graph::FusionOp>(op))
      return refuse(op, phase, "only graph, arith and math operations on global tensors have a meaning here");
    if (!llvm::all_of(op->getResultTypes(), isGraphTensor))
      return refuse(op, phase,
                    "values are tensors of static shape without zeros, of f32, f64, bf16, f16, i64, i32 or i1");
    if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && !isa<DenseElementsAttr>(constant.getValue()))
      return refuse(op, phase, "constants are written out as 'dense<...>'");
    return success();
  case Phase::Shard:
  case Phase::Stage:
  case Phase::Local:
    if (auto mesh = dyn_cast<dist::MeshOp>(op); mesh && mesh.getRankCount() != 1)
      return mesh.emitOpError("has ") << mesh.getRankCount()
                                      << " ranks, but this version compiles for one; make every axis 1";
    return success();
  case Phase::Fuse:
    if (!isFusedLevel(op))
      return refuse(op, phase, "every computation must be a call of a kernel");
    return success();
  case Phase::Schedule:
    if (!isPlanLevel(op) && !isKernelBody(op))
      return refuse(op, phase, "only the plan dialect and the bodies of kernels are left");
    return success();
  case Phase::Memory:
  case Phase::Plan:
    if (!isPlanLevel(op))
      return refuse(op, phase, "only the plan dialect is left");
    if (auto buffer = dyn_cast<plan::BufferOp>(op); buffer && !buffer.getOffset())
      return refuse(op, phase, "every buffer must have an offset");
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
  StringRef getDescription() const override { return "Check what must be gone after a phase"; }

  void runOnOperation() override {
    WalkResult result =
        getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) { return WalkResult(verifyOperation(op, phase)); });
    if (result.wasInterrupted())
      return signalPassFailure();
    if (phase >= Phase::Graph && phase <= Phase::Fuse && getOperation().getOps<graph::EntryOp>().empty()) {
      getOperation().emitError(
          "nothing can be run: the module needs a graph.func @loss or @generate, or a graph.entry");
      signalPassFailure();
    }
    markAllAnalysesPreserved();
  }

private:
  Phase phase;
};

} // namespace

std::unique_ptr<Pass> bowline::createVerifyPhasePass(Phase phase) { return std::make_unique<VerifyPhasePass>(phase); }
