//===- NeutralPadding.cpp - What padding holds, and where it must hold something else
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOpInterfaces.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "passes/Sharding/Padding.h"
#include "passes/Sharding/ShardingState.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace bowline;
using graph::FactorRule;
using graph::HostTensor;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// A finite number of the type whose exponential, less that of any logit, is zero.
static double absentLogit(Type type) { return cast<RankedTensorType>(type).getElementType().isF16() ? -6e4 : -1e30; }

static Value splat(ImplicitLocOpBuilder &builder, RankedTensorType type, double value) {
  Attribute element = isa<FloatType>(type.getElementType())
                          ? Attribute(builder.getFloatAttr(type.getElementType(), value))
                          : Attribute(builder.getIntegerAttr(type.getElementType(), static_cast<int64_t>(value)));
  return arith::ConstantOp::create(builder, DenseElementsAttr::get(type, element));
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

bool NeutralPadding::isGrown(Value value, int64_t dim) const {
  auto it = oldShapes.find(value);
  return it != oldShapes.end() && it->second[dim] != typeOf(value).getDimSize(dim);
}

/// The value of all elements of a constant; none of another value.
static std::optional<double> splatOf(Value value) {
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat())
    return std::nullopt;
  if (isa<FloatType>(elements.getElementType())) {
    APFloat number = elements.getSplatValue<APFloat>();
    bool ignored;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &ignored);
    return number.convertToDouble();
  }
  APInt number = elements.getSplatValue<APInt>();
  return static_cast<double>(number.getBitWidth() == 1 ? static_cast<int64_t>(number.getZExtValue())
                                                       : number.getSExtValue());
}

NeutralPadding::Number NeutralPadding::numberIn(Value value, int64_t dim) const {
  if (Number constant = splatOf(value))
    return constant;
  auto it = numbers.find({value.getAsOpaquePointer(), dim});
  return it == numbers.end() ? std::nullopt : Number(it->second);
}

void NeutralPadding::require(OpOperand &operand, int64_t dim, double number) {
  Number present = numberIn(operand.get(), dim);
  // Of a logit any lower number will do as well.
  if (present && (*present == number || (number < 0 && *present < number)))
    return;
  operand.set(mask(operand.get(), dim, number));
}

/// \p value with \p number in the padding of a dimension.
Value NeutralPadding::mask(Value value, int64_t dim, double number) {
  Value &masked = masks[{value.getAsOpaquePointer(), dim, number}];
  if (masked)
    return masked;
  ImplicitLocOpBuilder builder(value.getLoc(), value.getContext());
  builder.setInsertionPointAfterValue(value);
  RankedTensorType type = typeOf(value), indices = type.clone(builder.getI32Type());
  Value index = graph::IotaOp::create(builder, RankedTensorType::get({type.getDimSize(dim)}, builder.getI32Type()), 0);
  index = graph::BroadcastOp::create(builder, indices, index, ArrayRef<int64_t>{dim});
  Value inside = arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, index,
                                       splat(builder, indices, static_cast<double>(oldShapes[value][dim])));
  masked = arith::SelectOp::create(builder, inside, value, splat(builder, type, number));
  for (int64_t other = 0; other < type.getRank(); ++other)
    if (Number present = numberIn(value, other); other == dim || present == Number(number))
      numbers[{masked.getAsOpaquePointer(), other}] = number;
  SmallVector<int64_t> oldShape = oldShapes[value];
  oldShapes[masked] = std::move(oldShape);
  return masked;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

void NeutralPadding::run(graph::FuncOp function) {
  SmallVector<Operation *> ops;
  for (Operation &op : function.getBody().front())
    ops.push_back(&op);
  for (Operation *op : ops)
    visit(op);
}

void NeutralPadding::visit(Operation *op) {
  if (auto result = dyn_cast<graph::ReturnOp>(op))
    return restore(result);
  if (auto write = dyn_cast<graph::WriteOp>(op)) {
    for (int64_t dim = 0; dim < typeOf(write.getValue()).getRank(); ++dim)
      if (isGrown(write.getValue(), dim))
        require(write.getValueMutable(), dim, 0.0);
    return;
  }
  std::optional<FactorRule> rule;
  llvm::SmallSetVector<int64_t, 2> grown;
  auto collect = [&](ValueRange values, ArrayRef<FactorRule::TensorFactors> tensors) {
    for (auto [value, tensor] : llvm::zip_equal(values, tensors))
      for (auto [dim, factors] : llvm::enumerate(tensor))
        if (isGrown(value, static_cast<int64_t>(dim)))
          grown.insert(*soleFactor(*rule, factors));
  };
  auto isPadded = [&](Value value) { return oldShapes.contains(value); };
  if (llvm::none_of(op->getOperands(), isPadded) && llvm::none_of(op->getResults(), isPadded))
    return;
  if (isa<graph::ReadOp>(op)) {
    for (int64_t dim = 0; dim < typeOf(op->getResult(0)).getRank(); ++dim)
      numbers[{op->getResult(0).getAsOpaquePointer(), dim}] = 0.0;
    return;
  }
  rule = factorRuleOf(op);
  collect(op->getOperands(), rule->operands);
  collect(op->getResults(), rule->results);
  for (int64_t factor : grown) {
    requireNeutral(op, *rule, factor);
    for (auto [index, tensor] : llvm::enumerate(rule->results))
      for (auto [dim, factors] : llvm::enumerate(tensor))
        if (soleFactor(*rule, factors) == factor)
          if (Number number = infer(op, *rule, factor, static_cast<int64_t>(index)); number && std::isfinite(*number))
            numbers[{op->getResult(index).getAsOpaquePointer(), static_cast<int64_t>(dim)}] = *number;
  }
}

/// The dimension of a tensor that is the factor; none if it has none.
static std::optional<int64_t> dimOf(const FactorRule &rule, const FactorRule::TensorFactors &tensor, int64_t factor) {
  for (auto [dim, factors] : llvm::enumerate(tensor))
    if (soleFactor(rule, factors) == factor)
      return static_cast<int64_t>(dim);
  return std::nullopt;
}

/// Padding of the operands that goes into results without padding changes nothing.
void NeutralPadding::requireNeutral(Operation *op, const FactorRule &rule, int64_t factor) {
  auto dimIn = [&](unsigned operand) { return dimOf(rule, rule.operands[operand], factor); };
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](graph::DotGeneralOp dot) {
        std::optional<int64_t> lhs = dimIn(0), rhs = dimIn(1);
        if (rule.factors[factor].kind != FactorRule::Kind::Reduction || numberIn(dot.getLhs(), *lhs) == Number(0.0) ||
            numberIn(dot.getRhs(), *rhs) == Number(0.0))
          return;
        bool left = typeOf(dot.getLhs()).getNumElements() < typeOf(dot.getRhs()).getNumElements();
        require(op->getOpOperand(left ? 0 : 1), left ? *lhs : *rhs, 0.0);
      })
      .Case([&](graph::ReduceOp reduce) {
        if (!llvm::is_contained(reduce.getDims(), *dimIn(0)))
          return;
        bool isSum = reduce.getKind() == graph::ReduceKind::Sum;
        require(op->getOpOperand(0), *dimIn(0), isSum ? 0.0 : absentLogit(reduce.getInput().getType()));
      })
      .Case<graph::SoftmaxCrossEntropyOp, graph::SoftmaxCrossEntropyGradOp>([&](auto loss) {
        RankedTensorType logits = typeOf(loss.getLogits());
        if (dimIn(0) == logits.getRank() - 1)
          require(op->getOpOperand(0), *dimIn(0), absentLogit(logits));
      });
}

/// What an operand's padding holds.
NeutralPadding::Number NeutralPadding::carried(Operation *op, const FactorRule &rule, int64_t factor,
                                               unsigned operand) {
  std::optional<int64_t> dim = dimOf(rule, rule.operands[operand], factor);
  return dim ? numberIn(op->getOperand(operand), *dim) : std::nullopt;
}

NeutralPadding::Number NeutralPadding::infer(Operation *op, const FactorRule &rule, int64_t factor, int64_t result) {
  auto carry = [&](unsigned operand) { return carried(op, rule, factor, operand); };
  auto ifZero = [](Number number) { return number == Number(0.0) ? number : std::nullopt; };
  if (op->hasTrait<OpTrait::Elementwise>())
    return evaluate(op, *dimOf(rule, rule.results[result], factor));
  return llvm::TypeSwitch<Operation *, Number>(op)
      .Case([](graph::RandomOp) { return 0.0; })
      .Case<graph::BroadcastOp, graph::TransposeOp, graph::ReshapeOp, graph::SliceOp, graph::GatherOp,
            stage::TransferOp>([&](auto) { return carry(0); })
      .Case<graph::PadOp, graph::ReduceOp>([&](auto) { return ifZero(carry(0)); })
      .Case([&](graph::ConcatOp) {
        bool zero = llvm::all_of(llvm::seq(op->getNumOperands()), [&](unsigned i) { return carry(i) == Number(0.0); });
        return zero ? Number(0.0) : std::nullopt;
      })
      .Case([&](graph::DotGeneralOp) {
        return carry(0) == Number(0.0) || carry(1) == Number(0.0) ? Number(0.0) : std::nullopt;
      })
      // Rows that no index names; else the columns of the updates.
      .Case([&](graph::ScatterAddOp) { return dimOf(rule, rule.results[0], factor) == 0 ? 0.0 : ifZero(carry(0)); })
      .Case([&](graph::SoftmaxCrossEntropyGradOp grad) {
        bool isClasses = dimOf(rule, rule.results[0], factor) == typeOf(grad.getResult()).getRank() - 1;
        return isClasses ? Number(0.0) : std::nullopt; // the exponential of an absent logit
      })
      .Default([](Operation *) { return std::nullopt; });
}

/// The operation on the numbers that its operands hold. Anything finite times zero is zero.
NeutralPadding::Number NeutralPadding::evaluate(Operation *op, int64_t dim) {
  SmallVector<Number> known;
  for (Value operand : op->getOperands())
    known.push_back(numberIn(operand, dim));
  if (isa<arith::MulFOp>(op) && llvm::is_contained(known, Number(0.0)))
    return 0.0;
  if (isa<arith::SelectOp>(op) && !known[0])
    return known[1] == known[2] ? known[1] : std::nullopt;
  auto interpretable = dyn_cast<graph::Interpretable>(op);
  if (!interpretable || llvm::is_contained(known, std::nullopt) || op->getNumResults() != 1)
    return std::nullopt;
  SmallVector<HostTensor> operands;
  for (Number number : known) {
    operands.emplace_back(std::vector<int64_t>{1});
    operands.back().data[0] = *number;
  }
  SmallVector<HostTensor> results(1, HostTensor(std::vector<int64_t>{1}));
  // What cannot be evaluated is not known.
  ScopedDiagnosticHandler handler(op->getContext(), [](Diagnostic &) { return success(); });
  if (failed(interpretable.interpret(operands, results)))
    return std::nullopt;
  return results[0].data[0];
}

/// Callers get values as they were.
void NeutralPadding::restore(graph::ReturnOp op) {
  for (OpOperand &operand : op->getOpOperands()) {
    auto it = oldShapes.find(operand.get());
    if (it == oldShapes.end())
      continue;
    ImplicitLocOpBuilder builder(op.getLoc(), op);
    SmallVector<int64_t> offsets(it->second.size(), 0);
    operand.set(graph::SliceOp::create(builder, operand.get(), offsets, it->second));
  }
}
