//===- LibraryEpilogue.cpp - Epilogues that a library computes with a product
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Epilogues/LibraryEpilogue.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/Fusion/Epilogues/ProductCall.h"
#include "passes/Fusion/Epilogues/SameExpression.h"
#include "passes/Fusion/Groups/Traffic.h"

using namespace mlir;
using namespace bowline;

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

/// Looks at one group with one of the products that it reads.
class LibraryEpilogue::Matcher {
public:
  Matcher(graph::FusionOp group, graph::KernelModel product, unsigned number)
      : group(group), body(group.getBody().front()), product(product), argument(body.getArgument(number)),
        yielded(body.getTerminator()->getOperands()) {}

  std::optional<LibraryEpilogue> match(bool keepsInput) {
    result.group = group;
    result.product = product;
    if (matchGradient() || matchForward(keepsInput))
      return result;
    return std::nullopt;
  }

private:
  /// product * gelu'(input), rounded to the input's type.
  bool matchGradient() {
    if (yielded.size() != 1)
      return false;
    for (BlockArgument input : body.getArguments()) {
      if (input == argument || input.getType() != yielded[0].getType() ||
          graph::tensorType(input).getShape() != graph::tensorType(argument).getShape())
        continue;
      Block wanted;
      Location loc = group.getLoc();
      ImplicitLocOpBuilder b(loc, group.getContext());
      b.setInsertionPointToStart(&wanted);
      Value grad = wanted.addArgument(argument.getType(), loc), x = wanted.addArgument(input.getType(), loc);
      auto gelu = graph::GeluOp::create(b, x.getType(), graph::GeluKind::Tanh, x);
      SmallVector<Value> gradients(1);
      if (failed(cast<graph::Differentiable>(gelu.getOperation()).buildVjp(b, grad, gradients)))
        continue;
      SameExpression same;
      same.assume(argument, grad);
      same.assume(input, x);
      if (!same(yielded[0], gradients[0]))
        continue;
      result.epilogue = "gelu_gradient";
      result.input = outside(input);
      result.outputs = {0};
      return true;
    }
    return false;
  }

  /// A bias, GELU, or both, which are all operations of the group.
  bool matchForward(bool keepsInput) {
    Value x = argument;
    size_t matched = 0;
    if (arith::AddFOp sum = onlyUser<arith::AddFOp>(x)) {
      Value other = sum.getLhs() == x ? sum.getRhs() : sum.getLhs();
      if (!matchBias(other, matched))
        return false;
      x = sum;
      ++matched;
    }
    Value gelu = geluOf(x);
    matched += gelu ? 1 : 0;
    if (matched == 0 || matched != llvm::range_size(body.without_terminator()))
      return false;
    if (!gelu) {
      result.epilogue = "bias";
      return yields(x);
    }
    if (yields(gelu)) {
      result.epilogue = result.bias ? "bias_gelu" : "gelu";
      return true;
    }
    // Without a bias the operand of GELU is the product, which other groups would read.
    result.epilogue = "bias_gelu_kept";
    return keepsInput && result.bias && yields(gelu, x);
  }

  /// The result of the group that is GELU of `x`, in its form with tanh; null where there is none.
  Value geluOf(Value x) {
    Block wanted;
    Value input = wanted.addArgument(x.getType(), group.getLoc());
    OpBuilder builder(group.getContext());
    builder.setInsertionPointToStart(&wanted);
    Value gelu = graph::GeluOp::create(builder, group.getLoc(), x.getType(), graph::GeluKind::Tanh, input);
    SameExpression same;
    same.assume(x, input);
    for (Value value : yielded)
      if (same(value, gelu))
        return value;
    return {};
  }

  /// A value per column: repeated, and rounded to the product's type before or after that.
  bool matchBias(Value value, size_t &matched) {
    auto rounded = [&](Value whole) -> Value {
      auto cut = whole.getDefiningOp<arith::TruncFOp>();
      matched += cut ? 1 : 0;
      return cut && cut->hasOneUse() ? cut.getIn() : cut ? Value() : whole;
    };
    value = rounded(value);
    Operation *repeated = value ? value.getDefiningOp() : nullptr;
    if (!repeated || !graph::isRepetition(repeated) || !repeated->hasOneUse())
      return false;
    ++matched;
    int64_t rank = graph::tensorType(value).getRank();
    if (!llvm::equal(graph::repeatedDims(repeated), llvm::seq<int64_t>(*product.epilogueRowDims(), rank)))
      return false;
    auto vector = dyn_cast_or_null<BlockArgument>(rounded(repeated->getOperand(0)));
    if (!vector)
      return false;
    result.bias = outside(vector);
    result.biasType = graph::tensorType(vector).clone(graph::tensorType(argument).getElementType());
    return true;
  }

  template <typename Op> static Op onlyUser(Value value) {
    return value.hasOneUse() ? dyn_cast<Op>(*value.user_begin()) : Op();
  }

  /// Whether the group returns these values alone; remembers in which order.
  bool yields(Value first, Value second = {}) {
    auto find = [&](Value value) { return static_cast<unsigned>(llvm::find(yielded, value) - yielded.begin()); };
    result.outputs = {find(first)};
    if (second)
      result.outputs.push_back(find(second));
    return yielded.size() == result.outputs.size() &&
           llvm::all_of(result.outputs, [&](unsigned number) { return number < yielded.size(); });
  }

  Value outside(BlockArgument inside) { return group.getInputs()[inside.getArgNumber()]; }

  graph::FusionOp group;
  Block &body;
  graph::KernelModel product;
  BlockArgument argument; ///< the product in the body
  OperandRange yielded;
  LibraryEpilogue result;
};

std::optional<LibraryEpilogue> LibraryEpilogue::match(graph::FusionOp group, const ModuleTarget &target,
                                                      bool keepsInput) {
  if (group.getContraction() || group.getValidRows())
    return std::nullopt;
  for (auto [number, value] : llvm::enumerate(group.getInputs())) {
    auto product = value.getDefiningOp<graph::KernelModel>();
    if (!product || !value.hasOneUse() || product->getBlock() != group->getBlock() || !product.epilogueRowDims())
      continue;
    std::optional<LibraryEpilogue> found = Matcher(group, product, number).match(keepsInput);
    if (!found)
      continue;
    SmallVector<Type> operands = llvm::to_vector(product->getOperandTypes()), results;
    if (found->bias)
      operands.push_back(found->biasType);
    if (found->input)
      operands.push_back(found->input.getType());
    for (unsigned output : found->outputs)
      results.push_back(group.getResult(output).getType());
    if (productCallOf(product, found->epilogue, operands, results).isComputedBy(target))
      return found;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Fusing
//===----------------------------------------------------------------------===//

/// `bias` in another type.
static Value rounded(OpBuilder &builder, Location loc, Value bias, RankedTensorType type) {
  auto fusion = graph::FusionOp::create(builder, loc, TypeRange{type}, ValueRange{bias});
  OpBuilder::InsertionGuard guard(builder);
  Block &body = fusion.getBody().emplaceBlock();
  Value argument = body.addArgument(bias.getType(), loc);
  builder.setInsertionPointToStart(&body);
  Value narrow = arith::TruncFOp::create(builder, loc, type, argument);
  graph::YieldOp::create(builder, loc, narrow);
  return fusion.getResult(0);
}

/// `bias` as `op` repeats the vector that it is made of.
static Value repeatedBias(OpBuilder &builder, Operation &op, Value bias) {
  RankedTensorType type = graph::tensorType(op.getResult(0)).clone(graph::tensorType(bias).getElementType());
  return graph::BroadcastOp::create(builder, op.getLoc(), type, bias, graph::repeatedDims(&op));
}

graph::FusionOp LibraryEpilogue::fuse() {
  OpBuilder builder(group);
  MLIRContext *context = group.getContext();
  Location loc = FusedLoc::get(context, {product->getLoc(), group.getLoc()});
  SmallVector<Value> inputs = llvm::to_vector(product->getOperands());
  unsigned ownInputs = inputs.size();
  if (bias)
    inputs.push_back(bias.getType() == biasType ? bias : rounded(builder, group.getLoc(), bias, biasType));
  if (input)
    inputs.push_back(input);
  SmallVector<Type> types;
  for (unsigned output : outputs)
    types.push_back(group.getResult(output).getType());
  auto fused = graph::FusionOp::create(builder, loc, types, inputs);
  fused.setEpilogue(epilogue);
  Block &body = fused.getBody().emplaceBlock();
  for (Value value : inputs)
    body.addArgument(value.getType(), value.getLoc());

  builder.setInsertionPointToStart(&body);
  // The operands of the clone are set by position, as both sides of the product may be one value.
  Operation *contraction = builder.clone(*product);
  contraction->setOperands(ValueRange(body.getArguments()).take_front(ownInputs));
  IRMapping mapping;
  Block &old = group.getBody().front();
  for (auto [value, argument] : llvm::zip_equal(group.getInputs(), old.getArguments())) {
    if (value == product->getResult(0))
      mapping.map(argument, contraction->getResult(0));
    else if (value == bias || value == input)
      mapping.map(argument, body.getArguments().back());
  }
  for (Operation &op : old.without_terminator()) {
    // The bias has its type already.
    if (auto cut = dyn_cast<arith::TruncFOp>(op); cut && bias)
      mapping.map(cut.getResult(), mapping.lookup(cut.getIn()));
    else if (graph::isRepetition(&op))
      mapping.map(op.getResult(0), repeatedBias(builder, op, mapping.lookup(op.getOperand(0))));
    else
      builder.clone(op, mapping);
  }
  SmallVector<Value> yielded;
  for (unsigned output : outputs)
    yielded.push_back(mapping.lookup(old.getTerminator()->getOperand(output)));
  graph::YieldOp::create(builder, group.getLoc(), yielded);

  for (auto [place, output] : llvm::enumerate(outputs))
    group.getResult(output).replaceAllUsesWith(fused.getResult(place));
  group.erase();
  product->erase();
  return fused;
}

int64_t LibraryEpilogue::savedBytes() const { return 2 * bytesOfTensor(product->getResult(0)); }
