//===- NeutralPadding.cpp - Contents of padding, and places where padding must hold another value
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOpInterfaces.h"
#include "dialects/Graph/Movement.h"
#include "kernels/registry/data_check.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "passes/Analysis/KernelSignature.h"
#include "passes/Analysis/ShardingState.h"
#include "passes/Sharding/Padding/Padding.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace bowline;
using graph::FactorRule;

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
  return it != oldShapes.end() && it->second[dim] != graph::tensorType(value).getDimSize(dim);
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
  // Only logits need a negative number in their padding, and for them any lower number does too.
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
  RankedTensorType type = graph::tensorType(value), indices = type.clone(builder.getI32Type());
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

/// The dimension of a tensor that is the factor; none if it has none.
static std::optional<int64_t> dimOf(const FactorRule &rule, const FactorRule::TensorFactors &tensor, int64_t factor) {
  for (auto [dim, factors] : llvm::enumerate(tensor))
    if (soleFactor(rule, factors) == factor)
      return static_cast<int64_t>(dim);
  return std::nullopt;
}

/// One factor of an operation that has grown.
class NeutralPadding::Context final : public graph::PaddingContext {
public:
  Context(NeutralPadding &padding, Operation *op, const FactorRule &rule, int64_t factor)
      : padding(padding), op(op), rule(rule), factor(factor) {}

  FactorRule::Kind kind() const override { return rule.factors[factor].kind; }
  std::optional<int64_t> dimOfOperand(unsigned operand) const override {
    return dimOf(rule, rule.operands[operand], factor);
  }
  std::optional<int64_t> dimOfResult(unsigned result) const override {
    return dimOf(rule, rule.results[result], factor);
  }
  Number numberIn(unsigned operand) const override {
    if (Number constant = splatOf(op->getOperand(operand)))
      return constant;
    std::optional<int64_t> dim = dimOfOperand(operand);
    return dim ? padding.numberIn(op->getOperand(operand), *dim) : std::nullopt;
  }
  void require(unsigned operand, double number) override {
    padding.require(op->getOpOperand(operand), *dimOfOperand(operand), number);
  }

private:
  NeutralPadding &padding;
  Operation *op;
  const FactorRule &rule;
  int64_t factor;
};

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
    for (int64_t dim = 0; dim < graph::tensorType(write.getValue()).getRank(); ++dim)
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
    for (int64_t dim = 0; dim < graph::tensorType(op->getResult(0)).getRank(); ++dim)
      numbers[{op->getResult(0).getAsOpaquePointer(), dim}] = 0.0;
    return;
  }
  if (auto kernel = dyn_cast<graph::KernelModel>(op))
    excludePaddedRows(kernel);
  rule = factorRuleOf(op);
  collect(op->getOperands(), rule->operands);
  collect(op->getResults(), rule->results);
  auto model = dyn_cast<graph::PaddingModel>(op);
  for (int64_t factor : grown) {
    Context context(*this, op, *rule, factor);
    if (model)
      model.requireNeutralPadding(context);
    for (unsigned result = 0; result < op->getNumResults(); ++result)
      if (std::optional<int64_t> dim = context.dimOfResult(result)) {
        Number number = model ? model.resultPadding(context, result) : graph::paddingByTraits(op, context);
        if (number && std::isfinite(*number))
          numbers[{op->getResult(result).getAsOpaquePointer(), *dim}] = *number;
      }
  }
}

/// Row numbers and offsets beyond the rows that there were are as wrong as they would be without padding.
void NeutralPadding::excludePaddedRows(graph::KernelModel op) {
  const kernels::DataCheck *check = kernels::FindDataCheck(std::string_view(op.kernelName()));
  if (!check || op.kernelConfig(/*hasEpilogue=*/false).contains(StringRef(kernels::kInRange)))
    return;
  Value table = tableOf(op, *check);
  OpOperand &data = op->getOpOperand(check->argument);
  if (!isGrown(table, 0))
    return;
  int64_t rows = oldShapes[table].front(), last = check->is_row ? rows - 1 : rows;
  if (check->is_row && graph::areKeptBelow(data.get(), rows))
    return;
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  RankedTensorType type = graph::tensorType(data.get());
  Value isRow = arith::CmpIOp::create(builder, arith::CmpIPredicate::sle, data.get(),
                                      splat(builder, type, static_cast<double>(last)));
  Value none = splat(builder, type, std::numeric_limits<int32_t>::max());
  Value numbers = arith::SelectOp::create(builder, isRow, data.get(), none);
  if (auto old = oldShapes.find(data.get()); old != oldShapes.end()) {
    SmallVector<int64_t> oldShape = old->second;
    oldShapes[numbers] = std::move(oldShape);
  }
  data.set(numbers);
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
