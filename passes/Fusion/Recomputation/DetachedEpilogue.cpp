//===- DetachedEpilogue.cpp - Results of an epilogue without its matrix product
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Recomputation/DetachedEpilogue.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

using namespace mlir;
using namespace bowline;

namespace {

class Detacher {
public:
  explicit Detacher(graph::FusionOp group) : group(group), body(group.getBody().front()) {
    for (auto [index, value] : llvm::enumerate(body.getTerminator()->getOperands()))
      yielded.try_emplace(value, index);
  }

  std::optional<DetachedEpilogue> detach(Value value) {
    wanted = value;
    operations.clear();
    inputs.clear();
    if (!value.getDefiningOp() || !collect(value.getDefiningOp()))
      return std::nullopt;
    return DetachedEpilogue{yielded.lookup(value), build()};
  }

private:
  /// Whether memory holds the value that the group computed with: inside of a kernel values are f32, and those of
  /// narrower types are rounded when they are stored.
  bool isStored(Value value) const {
    Type element = getElementTypeOrSelf(value);
    return value != wanted && yielded.contains(value) && (element.isF32() || !isa<FloatType>(element));
  }

  /// False where the contraction itself is needed.
  bool collect(Operation *op) {
    if (op == group.getContraction())
      return false;
    for (Value operand : op->getOperands())
      if (isa<BlockArgument>(operand) || isStored(operand))
        inputs.insert(operand);
      else if (!collect(operand.getDefiningOp()))
        return false;
    operations.insert(op);
    return true;
  }

  /// The value outside of the group for a value of the body.
  Value outside(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return group->getOperand(argument.getArgNumber());
    return group->getResult(yielded.lookup(value));
  }

  OwningOpRef<graph::FusionOp> build() {
    OpBuilder builder(group.getContext());
    SmallVector<Value> operands = llvm::map_to_vector(inputs, [&](Value value) { return outside(value); });
    OwningOpRef<graph::FusionOp> detached =
        graph::FusionOp::create(builder, group.getLoc(), TypeRange{wanted.getType()}, operands);
    Block &block = detached->getBody().emplaceBlock();
    builder.setInsertionPointToStart(&block);
    IRMapping mapping;
    for (Value input : inputs)
      mapping.map(input, block.addArgument(input.getType(), input.getLoc()));
    for (Operation &op : body.without_terminator())
      if (operations.contains(&op))
        builder.clone(op, mapping);
    graph::YieldOp::create(builder, group.getLoc(), mapping.lookup(wanted));
    return detached;
  }

  graph::FusionOp group;
  Block &body;
  DenseMap<Value, unsigned> yielded; ///< and as which result
  Value wanted;
  llvm::SetVector<Operation *> operations;
  llvm::SetVector<Value> inputs;
};

} // namespace

std::vector<DetachedEpilogue> bowline::detachEpilogue(graph::FusionOp group) {
  std::vector<DetachedEpilogue> detached;
  Block &body = group.getBody().front();
  // Generated code would compute other bits than the library did.
  if (!group.getContraction() || group.getEpilogue())
    return detached;
  Detacher detacher(group);
  for (Operation &op : body.without_terminator())
    for (Value value : op.getResults())
      if (llvm::is_contained(body.getTerminator()->getOperands(), value))
        if (auto one = detacher.detach(value))
          detached.push_back(std::move(*one));
  return detached;
}
