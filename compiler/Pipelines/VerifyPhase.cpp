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
#include "dialects/Program/ElementTypes.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bowline;

//===----------------------------------------------------------------------===//
// Rules: an operation that a phase does not allow, and why.
//===----------------------------------------------------------------------===//

static bool isIn(Operation *op, StringRef dialect) { return op->getName().getDialectNamespace() == dialect; }

/// How the program is divided, as the phases after sharding may ask for it.
static bool isStrategy(Operation *op) {
  return isa<dist::StrategyOp>(op) || isa_and_nonnull<dist::StrategyOp>(op->getParentOp());
}

/// Before kernels are selected, functions hold tensor operations with reference semantics and variable accesses.
static bool isGraphLevel(Operation *op) {
  return isa<ModuleOp, dist::MeshOp, plan::AttachmentOp>(op) || isStrategy(op) || isIn(op, "graph") ||
         isIn(op, "stage") || isIn(op, "arith") || isIn(op, "math");
}

/// The types that graph's own operations take; upstream ones take more.
static bool isGraphTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || llvm::is_contained(tensor.getShape(), 0))
    return false;
  std::optional<ElementType> element = elementTypeOf(tensor.getElementType());
  return element && (IsFloat(*element) || *element == ElementType::kBool || *element == ElementType::kI32 ||
                     *element == ElementType::kI64);
}

/// What moves data between ranks, as a communicator does it, and the number that makes ranks differ.
static bool isCommunication(Operation *op) {
  auto collective = dyn_cast<dist::Collective>(op);
  return collective ? collective.getForm().isContiguous()
                    : isa<dist::CoordinateOp, stage::SendOp, stage::ReceiveOp>(op);
}

/// A kernel's body that waits for code generation.
static bool isKernelBody(Operation *op) { return isa<func::FuncOp>(op) || op->getParentOfType<func::FuncOp>(); }

static bool isFusedLevel(Operation *op) {
  return isKernelBody(op) || isCommunication(op) || isStrategy(op) || graph::isView(op) ||
         isa<ModuleOp, dist::MeshOp, graph::FuncOp, graph::ReturnOp, graph::EntryOp, graph::Variable, graph::ReadOp,
             graph::WriteOp, arith::ConstantOp, plan::CallOp, plan::KernelOp, plan::AttachmentOp>(op);
}

static bool isPlanLevel(Operation *op) {
  return isa<ModuleOp, dist::MeshOp>(op) || isStrategy(op) || (isIn(op, "plan") && !isa<plan::CallOp>(op));
}

static LogicalResult refuse(Operation *op, Phase phase, StringRef why) {
  return op->emitOpError() << "must not be there after phase '" << nameOf(phase) << "': " << why;
}

//===----------------------------------------------------------------------===//
// Programs of several ranks
//===----------------------------------------------------------------------===//

static bool hasSeveralRanks(Operation *op) {
  dist::MeshOp mesh = dist::MeshOp::of(op);
  return mesh && mesh.getRankCount() > 1;
}

/// The first argument of a function without the attribute.
static std::optional<unsigned> argumentWithout(graph::FuncOp function, StringRef attribute) {
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (!function.getArgAttr(index, attribute))
      return index;
  return std::nullopt;
}

/// Variables and arguments say which pieces they are in, and operations which their results are in; a constant of equal
/// elements is in any.
static LogicalResult verifySharded(Operation *op, Phase phase) {
  using dist::DistDialect;
  if (!hasSeveralRanks(op))
    return success();
  if (auto function = dyn_cast<graph::FuncOp>(op)) {
    std::optional<unsigned> index = argumentWithout(function, DistDialect::kShardingAttr);
    return index ? op->emitOpError("argument '")
                       << function.getArgName(*index) << "' has no sharding after phase '" << nameOf(phase) << "'"
                 : success();
  }
  bool isVariable = isa<graph::Variable>(op);
  if (isVariable ? op->hasAttr(DistDialect::kShardingAttr)
                 : op->getNumResults() == 0 || isa<dist::ReshardOp>(op) || op->hasAttr(DistDialect::kShardingsAttr))
    return success();
  if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && isa<SplatElementsAttr>(constant.getValue()))
    return success();
  return op->emitOpError() << "has no sharding after phase '" << nameOf(phase) << "'";
}

/// What a rank keeps between functions of a timeline is nobody else's business.
static bool isStash(Operation *op) {
  auto state = dyn_cast<graph::StateOp>(op);
  return state && state.isStash();
}

/// Shardings are left on what others feed and save: variables and arguments, which also have their global shape.
static LogicalResult verifyLocal(Operation *op, Phase phase) {
  using dist::DistDialect;
  if (!hasSeveralRanks(op))
    return success();
  if (isa<stage::CrossesStages>(op))
    return refuse(op, phase, "the program of each rank sends and receives; run split-stages");
  if (isIn(op, "dist") && !isa<dist::MeshOp>(op) && !isStrategy(op) && !isCommunication(op))
    return refuse(op, phase, "ranks exchange contiguous parts, along the first dimension; run lower-collectives");
  if (op->hasAttr(DistDialect::kShardingsAttr))
    return refuse(op, phase, "its results are still global tensors; run global-to-local");
  if (auto function = dyn_cast<graph::FuncOp>(op))
    for (StringRef attribute : {DistDialect::kShardingAttr, DistDialect::kGlobalShapeAttr})
      if (std::optional<unsigned> index = argumentWithout(function, attribute))
        return op->emitOpError("argument '")
               << function.getArgName(*index) << "' has no '" << attribute << "' after phase '" << nameOf(phase) << "'";
  bool isVariable = isa<graph::Variable>(op) && !isStash(op);
  for (StringRef attribute : {DistDialect::kShardingAttr, DistDialect::kGlobalShapeAttr})
    if (op->hasAttr(attribute) != isVariable)
      return op->emitOpError() << (isVariable ? "has no '" : "must not have '") << attribute << "' after phase '"
                               << nameOf(phase) << "'";
  return success();
}

//===----------------------------------------------------------------------===//
// All phases
//===----------------------------------------------------------------------===//

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
    return verifySharded(op, phase);
  case Phase::Local:
    return verifyLocal(op, phase);
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
    if (phase >= Phase::Graph && phase <= Phase::Fuse)
      checkEntries();
    markAllAnalysesPreserved();
  }

private:
  void checkEntries() {
    SmallVector<ModuleOp> programs = llvm::to_vector(getOperation().getOps<ModuleOp>());
    if (programs.empty())
      programs.push_back(getOperation());
    for (ModuleOp program : programs)
      if (program.getOps<graph::EntryOp>().empty()) {
        program.emitError(
            "nothing can be run: the module needs a graph.entry, or a function that is marked as the loss or "
            "as what generates, 'graph.func loss @name' or 'graph.func generate @name'");
        signalPassFailure();
      }
  }

  Phase phase;
};

} // namespace

std::unique_ptr<Pass> bowline::createVerifyPhasePass(Phase phase) { return std::make_unique<VerifyPhasePass>(phase); }
