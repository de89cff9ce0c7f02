//===- EpilogueFusion.cpp - Elementwise work on the result of a contraction
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Epilogues/EpilogueFusion.h"
#include "dialects/Program/ElementTypes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Fusion/Groups/FusionGroups.h"
#include "passes/Fusion/Groups/Traffic.h"

using namespace mlir;
using namespace bowline;

static bool hasEpilogueElements(Value value) { return isComputedIn(graph::tensorType(value).getElementType()); }

namespace {

/// The result of one matrix product, and the shapes that fit to it.
struct TileShape {
  ArrayRef<int64_t> shape;
  int64_t rowDims; // the first ones; the others are columns

  static std::optional<TileShape> of(Operation *product) {
    auto model = dyn_cast_or_null<graph::KernelModel>(product);
    std::optional<int64_t> rowDims = model ? model.epilogueRowDims() : std::nullopt;
    if (!rowDims || !hasEpilogueElements(product->getResult(0)) || !hasEpilogueElements(product->getOperand(0)))
      return std::nullopt;
    return TileShape{graph::tensorType(product->getResult(0)).getShape(), *rowDims};
  }

  bool fits(Value value) const { return graph::tensorType(value).getShape() == shape && hasEpilogueElements(value); }

  /// One value for everything, or one per row, or one per column.
  bool isRepeated(Operation &op) const {
    if (!graph::isRepetition(&op))
      return op.getNumOperands() == 0; // a constant
    SmallVector<int64_t> dims = graph::repeatedDims(&op);
    int64_t rank = shape.size();
    auto isRange = [&](int64_t begin, int64_t end) { return llvm::equal(dims, llvm::seq(begin, end)); };
    return dims.empty() || isRange(0, rowDims) || isRange(rowDims, rank);
  }

  bool fits(Operation &op) const {
    if (op.getNumResults() != 1 || !fits(op.getResult(0)) || !graph::canBeInEpilogue(&op))
      return false;
    if (graph::fusionRoleOf(&op) == graph::FusionRole::Repeated)
      return isRepeated(op);
    return llvm::all_of(op.getOperands(), [&](Value operand) { return fits(operand); });
  }

  bool fits(graph::FusionOp group) const {
    Block &body = group.getBody().front();
    return llvm::all_of(body.without_terminator(), [&](Operation &op) { return fits(op); }) &&
           llvm::all_of(group.getOutputs(), [&](Value output) { return fits(output); });
  }
};

} // namespace

/// Whether everything but `group` that uses `value` stands behind it.
static bool isUsedBehindOnly(Value value, graph::FusionOp group) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    return user == group.getOperation() || (user->getBlock() == group->getBlock() && group->isBeforeInBlock(user));
  });
}

std::optional<EpilogueFusion> EpilogueFusion::match(graph::FusionOp group) {
  Operation *best = nullptr;
  for (Value input : group.getInputs()) {
    Operation *product = input.getDefiningOp();
    if (!product || product->getBlock() != group->getBlock() || !isUsedBehindOnly(input, group))
      continue;
    auto tile = TileShape::of(product);
    if (tile && tile->fits(group) && (!best || best->isBeforeInBlock(product)))
      best = product;
  }
  if (!best)
    return std::nullopt;
  return EpilogueFusion(group, best);
}

//===----------------------------------------------------------------------===//
// Peeling
//===----------------------------------------------------------------------===//

namespace {

/// The computation of one result of a group from inputs alone, in block order.
struct Slice {
  Value result;
  SmallVector<Operation *> operations;
  SmallVector<Value> inputs; // arguments of the group's body

  static Slice of(Value result) {
    Slice slice{result, {}, {}};
    slice.collect(result);
    return slice;
  }

  bool contains(Operation *op) const { return llvm::is_contained(operations, op); }

  /// Whether no operation outside needs a value that is computed on the way to the result.
  bool isClosed() const {
    return llvm::all_of(operations, [&](Operation *op) {
      return op->getResult(0) == result || FusionGroups::isRepeated(op) || isReadInside(op->getResult(0));
    });
  }

  bool isReadInside(Value value) const {
    return llvm::all_of(value.getUsers(), [&](Operation *user) { return contains(user); });
  }

private:
  void collect(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op) {
      if (!llvm::is_contained(inputs, value))
        inputs.push_back(value);
      return;
    }
    if (contains(op))
      return;
    for (Value operand : op->getOperands())
      collect(operand);
    operations.push_back(op);
  }
};

} // namespace

/// A result of `group` that is computed elementwise from a contraction that nothing else reads.
static std::optional<Slice> findPeelable(graph::FusionOp group) {
  Block &body = group.getBody().front();
  for (auto [input, argument] : llvm::zip_equal(group.getInputs(), body.getArguments())) {
    auto tile = TileShape::of(input.getDefiningOp());
    if (!tile || !input.hasOneUse())
      continue;
    for (Value result : body.getTerminator()->getOperands()) {
      if (isa<BlockArgument>(result))
        continue;
      Slice slice = Slice::of(result);
      if (llvm::is_contained(slice.inputs, argument) && slice.isReadInside(argument) && slice.isClosed() &&
          llvm::all_of(slice.operations, [&](Operation *op) { return tile->fits(*op); }))
        return slice;
    }
  }
  return std::nullopt;
}

/// `slice` of `group` as a group of its own, in front of it.
static graph::FusionOp outline(graph::FusionOp group, const Slice &slice) {
  OpBuilder builder(group);
  SmallVector<Value> inputs = llvm::map_to_vector(slice.inputs, [&](Value argument) -> Value {
    return group.getInputs()[cast<BlockArgument>(argument).getArgNumber()];
  });
  Location loc = slice.result.getLoc();
  auto outlined = graph::FusionOp::create(builder, loc, TypeRange{slice.result.getType()}, inputs);
  Block &body = outlined.getBody().emplaceBlock();
  IRMapping mapping;
  for (Value input : slice.inputs)
    mapping.map(input, body.addArgument(input.getType(), input.getLoc()));
  builder.setInsertionPointToStart(&body);
  for (Operation *op : slice.operations)
    builder.clone(*op, mapping);
  graph::YieldOp::create(builder, loc, mapping.lookup(slice.result));
  return outlined;
}

graph::FusionOp EpilogueFusion::peel(graph::FusionOp group) {
  std::optional<Slice> slice = findPeelable(group);
  if (!slice)
    return {};
  graph::FusionOp peeled = outline(group, *slice);

  // The group reads the result instead of computing it, and does not store it any more.
  Block &body = group.getBody().front();
  SmallVector<Value> yielded, outputs;
  for (auto [value, output] : llvm::zip_equal(body.getTerminator()->getOperands(), group.getOutputs())) {
    if (value == slice->result) {
      output.replaceAllUsesWith(peeled.getResult(0));
      continue;
    }
    yielded.push_back(value);
    outputs.push_back(output);
  }
  body.getTerminator()->setOperands(yielded);
  slice->result.replaceAllUsesWith(body.addArgument(slice->result.getType(), slice->result.getLoc()));
  for (Operation *op : llvm::reverse(slice->operations))
    if (op->use_empty())
      op->erase();
  SmallVector<Value> inputs = llvm::to_vector(group.getInputs());
  inputs.push_back(peeled.getResult(0));
  for (int64_t i = static_cast<int64_t>(inputs.size()) - 1; i >= 0; --i)
    if (body.getArgument(i).use_empty()) {
      body.eraseArgument(i);
      inputs.erase(inputs.begin() + i);
    }

  OpBuilder builder(group);
  auto rest = graph::FusionOp::create(builder, group.getLoc(), ValueRange(outputs).getTypes(), inputs);
  rest.getBody().takeBody(group.getBody());
  for (auto [before, after] : llvm::zip_equal(outputs, rest.getOutputs()))
    before.replaceAllUsesWith(after);
  group.erase();
  return peeled;
}

//===----------------------------------------------------------------------===//
// Fusing
//===----------------------------------------------------------------------===//

graph::FusionOp EpilogueFusion::fuse() {
  Value result = product->getResult(0);
  unsigned ownInputs = product->getNumOperands();
  bool keepsProduct = llvm::any_of(product->getUsers(), [&](Operation *user) { return user != group; });
  SmallVector<Value> inputs = llvm::to_vector(product->getOperands());
  for (Value input : group.getInputs())
    if (input != result)
      inputs.push_back(input);
  SmallVector<Type> types = llvm::to_vector(group.getResultTypes());
  if (keepsProduct)
    types.push_back(result.getType());

  OpBuilder builder(group);
  auto fused = graph::FusionOp::create(builder, FusedLoc::get(group.getContext(), {product->getLoc(), group.getLoc()}),
                                       types, inputs);
  Block &body = fused.getBody().emplaceBlock();
  for (Value input : inputs)
    body.addArgument(input.getType(), input.getLoc());
  builder.setInsertionPointToStart(&body);
  // The operands of the clone are set by position, as both sides of the product may be one value.
  Operation *contraction = builder.clone(*product);
  contraction->setOperands(ValueRange(body.getArguments()).take_front(ownInputs));
  IRMapping mapping;
  unsigned next = ownInputs;
  for (auto [input, argument] : llvm::zip_equal(group.getInputs(), group.getBody().front().getArguments()))
    mapping.map(argument, input == result ? contraction->getResult(0) : Value(body.getArgument(next++)));
  for (Operation &op : group.getBody().front().without_terminator())
    builder.clone(op, mapping);
  SmallVector<Value> yielded = llvm::map_to_vector(group.getBody().front().getTerminator()->getOperands(),
                                                   [&](Value value) { return mapping.lookup(value); });
  if (keepsProduct)
    yielded.push_back(contraction->getResult(0));
  graph::YieldOp::create(builder, group.getLoc(), yielded);

  for (auto [before, after] : llvm::zip(group.getOutputs(), fused.getOutputs()))
    before.replaceAllUsesWith(after);
  group.erase();
  if (keepsProduct)
    result.replaceAllUsesWith(fused.getOutputs().back());
  product->erase();
  return fused;
}

int64_t EpilogueFusion::savedBytes() const {
  bool isKept = llvm::any_of(product->getUsers(), [&](Operation *user) { return user != group; });
  return bytesOfTensor(product->getResult(0)) * (isKept ? 1 : 2);
}

int64_t EpilogueFusion::operationCount() const {
  graph::FusionOp elementwise = group;
  auto operations = elementwise.getBody().front().without_terminator();
  return std::distance(operations.begin(), operations.end());
}
