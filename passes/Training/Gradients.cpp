//===- Gradients.cpp - Reverse-mode differentiation of a block
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Training/Gradients.h"
#include "dialects/Graph/GraphOpInterfaces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace {

class ReverseSweep {
public:
  ReverseSweep(OpBuilder &builder, Value output, ValueRange inputs) : builder(builder), output(output) {
    active.insert(inputs.begin(), inputs.end());
    for (Operation &op : *builder.getInsertionBlock())
      if (llvm::any_of(op.getOperands(), [&](Value value) { return active.contains(value); }))
        for (Value result : op.getResults())
          if (isDifferentiableType(result.getType()))
            active.insert(result);
  }

  LogicalResult run(Value seed) {
    accumulate(output, seed);
    SmallVector<Operation *> forward;
    for (Operation &op : *builder.getInsertionBlock()) {
      forward.push_back(&op);
      if (&op == output.getDefiningOp())
        break;
    }
    for (Operation *op : llvm::reverse(forward))
      if (failed(visit(op)))
        return failure();
    return success();
  }

  Value gradientOf(Value value) { return gradients.lookup(value); }

private:
  static bool isDifferentiableType(Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); }

  LogicalResult visit(Operation *op) {
    bool reachesInput = llvm::any_of(op->getOperands(), [&](Value value) { return active.contains(value); });
    SmallVector<Value> resultGrads;
    for (Value result : op->getResults())
      resultGrads.push_back(gradientOf(result));
    if (!reachesInput || llvm::none_of(resultGrads, [](Value grad) { return static_cast<bool>(grad); }))
      return success();

    auto differentiable = dyn_cast<bowline::graph::Differentiable>(op);
    if (!differentiable)
      return op->emitOpError("is not differentiable, but the loss depends on a parameter through it");

    Operation *last = previous();
    SmallVector<Value> operandGrads(op->getNumOperands());
    if (failed(differentiable.buildVjp(builder, resultGrads, operandGrads)))
      return failure();
    nameGradient(last, op->getLoc());
    for (auto [operand, grad] : llvm::zip_equal(op->getOperands(), operandGrads))
      if (grad && active.contains(operand))
        accumulate(operand, grad);
    return success();
  }

  /// The last operation before the insertion point.
  Operation *previous() {
    Block *block = builder.getInsertionBlock();
    auto point = builder.getInsertionPoint();
    return point == block->begin() ? nullptr : &*std::prev(point);
  }

  /// Locates everything that was built after `last` as the gradient of `origin`.
  void nameGradient(Operation *last, Location origin) {
    Location location = NameLoc::get(builder.getStringAttr("gradient"), origin);
    auto it = last ? std::next(last->getIterator()) : builder.getInsertionBlock()->begin();
    for (; it != builder.getInsertionPoint(); ++it)
      it->setLoc(location);
  }

  void accumulate(Value value, Value grad) {
    Value &sum = gradients[value];
    if (!sum) {
      sum = grad;
      return;
    }
    Location location = NameLoc::get(builder.getStringAttr("gradient"), value.getLoc());
    sum = arith::AddFOp::create(builder, location, sum, grad);
  }

  OpBuilder &builder;
  Value output;
  DenseSet<Value> active;
  DenseMap<Value, Value> gradients;
};

} // namespace

llvm::FailureOr<SmallVector<Value>> bowline::buildGradients(OpBuilder &builder, Value output, Value seed,
                                                            ValueRange inputs) {
  ReverseSweep sweep(builder, output, inputs);
  if (failed(sweep.run(seed)))
    return failure();
  SmallVector<Value> result;
  for (Value input : inputs)
    result.push_back(sweep.gradientOf(input));
  return result;
}
