//===- LowerPrecision.cpp - Compute in 16 bits, keep statistics in f32
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "dialects/Program/ElementTypes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "passes/Training/Passes.h"
#include "types/computed_types.h"

namespace bowline {
#define GEN_PASS_DEF_LOWERPRECISION
#include "passes/Training/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;
using graph::Precision;

namespace {

bool isF32(Value value) { return getElementTypeOrSelf(value.getType()).isF32(); }

Type withElements(Value value, Type elementType) { return cast<RankedTensorType>(value.getType()).clone(elementType); }

/// An f32 value that the program computes, such as the residual stream: parameters, constants and movements of their
/// elements round without harm, a sum over all layers does not.
bool isWideActivation(Value value) {
  if (!isF32(value))
    return false;
  Operation *op = value.getDefiningOp();
  while (op && op->getNumOperands() == 1 && graph::precisionOf(op) == Precision::Follow)
    op = op->getOperand(0).getDefiningOp();
  return !op || !(isa<graph::ReadOp>(op) || op->hasTrait<OpTrait::ConstantLike>());
}

/// Rewrites the operations of one block, in order.
class BlockLowering {
public:
  /// `lowered` are the values that are `narrow` though they were f32.
  BlockLowering(Block &block, Type narrow, DenseSet<Value> lowered)
      : block(block), narrow(narrow), lowered(std::move(lowered)) {}

  void run() {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      Precision rule = graph::precisionOf(&op);
      bool follows = rule == Precision::Follow || rule == Precision::Promote;
      bool isPromoted = rule == Precision::Promote && llvm::any_of(op.getOperands(), isWideActivation);
      if (rule == Precision::Narrow ||
          (follows && !isPromoted && llvm::any_of(op.getOperands(), [&](Value operand) { return isNarrow(operand); })))
        lower(&op);
      else if (rule == Precision::Keep || isPromoted)
        widenOperands(&op);
    }
  }

private:
  bool isNarrow(Value value) const { return getElementTypeOrSelf(value.getType()) == narrow; }

  void lower(Operation *op) {
    auto model = dyn_cast<graph::PrecisionModel>(op);
    for (OpOperand &operand : op->getOpOperands())
      if (isF32(operand.get()) && !(model && model.isWideOperand(operand.getOperandNumber())))
        operand.set(narrowed(operand.get()));
    for (OpResult result : op->getResults())
      if (isF32(result) && !(model && model.isWideResult(result.getResultNumber()))) {
        result.setType(cast<RankedTensorType>(withElements(result, narrow)));
        lowered.insert(result);
      }
  }

  /// Rounded once, beside its definition, for all who read it.
  Value narrowed(Value value) {
    Value &cast = casts[value];
    if (!cast) {
      OpBuilder builder(value.getContext());
      builder.setInsertionPointAfterValue(value);
      cast = arith::TruncFOp::create(builder, value.getLoc(), withElements(value, narrow), value);
    }
    return cast;
  }

  void widenOperands(Operation *op) {
    OpBuilder builder(op);
    for (OpOperand &operand : op->getOpOperands())
      if (lowered.contains(operand.get()))
        operand.set(arith::ExtFOp::create(builder, op->getLoc(), withElements(operand.get(), builder.getF32Type()),
                                          operand.get()));
  }

  Block &block;
  Type narrow;
  DenseSet<Value> lowered;
  DenseMap<Value, Value> casts;
};

/// Returns whether programs can compute in the type instead of f32.
static bool isNarrower(ElementType type) { return IsComputedIn(type) && SizeOf(type) < SizeOf(ElementType::kF32); }

class LowerPrecision : public bowline::impl::LowerPrecisionBase<LowerPrecision> {
public:
  using LowerPrecisionBase::LowerPrecisionBase;

  void runOnProgram() override {
    ModuleOp module = getOperation();
    std::optional<ElementType> element = ElementTypeFromName(to.getValue());
    if (!element || !isNarrower(*element)) {
      module.emitError("cannot compute in ") << to.getValue() << "; use one of " << NamesOf(&isNarrower);
      return signalPassFailure();
    }
    narrow = toMlirType(&getContext(), *element);
    DenseSet<Value> narrowReads;
    if (!keepMaster)
      narrowReads = storeParametersNarrow(module);
    for (auto function : module.getOps<graph::FuncOp>())
      BlockLowering(function.getBody().front(), narrow, narrowReads).run();
  }

private:
  /// Gives parameters the narrow type, for programs that do not train: they need no more precision than the computation
  /// has, unless the program itself writes them. Returns the values that are read.
  DenseSet<Value> storeParametersNarrow(ModuleOp module) {
    DenseSet<StringRef> written;
    module.walk([&](graph::WriteOp write) { written.insert(write.getVariable()); });
    SymbolTable symbols(module);
    DenseSet<Operation *> params;
    for (auto param : module.getOps<graph::ParamOp>())
      if (param.getTensorType().getElementType().isF32() && !written.contains(param.getName())) {
        param.setType(param.getTensorType().clone(narrow));
        params.insert(param);
      }
    DenseSet<Value> reads;
    module.walk([&](graph::ReadOp read) {
      auto param = symbols.lookup<graph::ParamOp>(read.getVariable());
      if (!param || !params.contains(param))
        return;
      read.getResult().setType(param.getTensorType());
      reads.insert(read.getResult());
    });
    return reads;
  }

  Type narrow;
};

} // namespace
