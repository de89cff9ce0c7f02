//===- Norm.cpp - rms_norm, layer_norm
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/TensorMath.h"

#include <cmath>

using namespace mlir;
using namespace bowline::graph;

/// `input` has a last dimension and each of `vectors` is that long.
static LogicalResult checkNorm(std::optional<Location> loc, RankedTensorType input, ValueRange vectors, double eps) {
  if (input.getRank() == 0)
    return emitOptionalError(loc, "the input needs at least one dimension");
  for (Value vector : vectors) {
    RankedTensorType type = tensorType(vector);
    if (type.getRank() != 1 || type.getDimSize(0) != input.getShape().back())
      return emitOptionalError(loc, "scale and bias must have one dimension of size ", input.getShape().back(),
                               ", got ", type);
    if (type.getElementType() != input.getElementType())
      return emitOptionalError(loc, "element types must agree");
  }
  if (!std::isfinite(eps) || eps < 0)
    return emitOptionalError(loc, "eps must be finite and not negative");
  return success();
}

/// Rows are independent; the last dimension, which all operands have, is normalised as a whole.
static FactorRule rowRule(Operation *norm) {
  FactorRule rule;
  ArrayRef<int64_t> shape = tensorType(norm->getOperand(0)).getShape();
  FactorRule::TensorFactors input = rule.addDims(shape.drop_back());
  FactorRule::TensorFactors vector = rule.addDims(shape.take_back(), FactorRule::Kind::Blocked);
  llvm::append_range(input, vector);
  rule.operands.assign(norm->getNumOperands(), vector);
  rule.operands[0] = input;
  rule.results = {input};
  return rule;
}

/// 1 / sqrt(square + eps).
static double inverseRoot(const Arithmetic &arithmetic, double square, const APFloat &eps) {
  return arithmetic.divide(1, arithmetic.sqrt(arithmetic.add(square, arithmetic.number(eps.convertToDouble()))));
}

namespace {
/// Builds the arithmetic of a norm's backward pass over rows: the last dimension of `type`, which has the element type
/// of statistics.
struct RowMath {
  RowMath(ImplicitLocOpBuilder &b, RankedTensorType input)
      : b(b), type(input.clone(statisticsType(input.getElementType()))) {}

  ImplicitLocOpBuilder &b;
  RankedTensorType type;
  int64_t last = type.getRank() - 1;
  RankedTensorType statistics = RankedTensorType::get(type.getShape().drop_back(), type.getElementType());

  Value wide(Value value) {
    RankedTensorType wanted = tensorType(value).clone(type.getElementType());
    return value.getType() == wanted ? value : arith::ExtFOp::create(b, wanted, value);
  }
  /// Rounds `value`, the gradient of `operand`, to the operand's type.
  Value gradOf(Value operand, Value value) {
    return value.getType() == operand.getType() ? value : arith::TruncFOp::create(b, operand.getType(), value);
  }
  Value mul(Value lhs, Value rhs) { return arith::MulFOp::create(b, lhs, rhs); }
  Value sub(Value lhs, Value rhs) { return arith::SubFOp::create(b, lhs, rhs); }
  Value acrossRow(Value statistic) { return broadcastAlong(b, statistic, type, {last}); }
  Value acrossRows(Value vector) {
    return broadcastAlong(b, vector, type, llvm::to_vector(llvm::seq<int64_t>(0, last)));
  }
  Value sumRows(Value value) { return sumOver(b, value, llvm::to_vector(llvm::seq<int64_t>(0, last))); }
  Value mean(Value value) {
    Value sum = sumOver(b, value, {last});
    return mul(sum, constantLike(b, statistics, 1.0 / type.getShape().back()));
  }
  Value inverseRoot(Value square, double eps) {
    return math::RsqrtOp::create(b, arith::AddFOp::create(b, square, constantLike(b, statistics, eps)));
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// RmsNormOp
//===----------------------------------------------------------------------===//

LogicalResult RmsNormOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                          SmallVectorImpl<Type> &results) {
  results.push_back(adaptor.getInput().getType());
  return checkNorm(loc, tensorType(adaptor.getInput()), adaptor.getScale(), adaptor.getEps().convertToDouble());
}

LogicalResult RmsNormOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  // With r = 1 / rms and n = x r: dx = r (g scale - n mean(g scale n)), dscale = sum of g n over rows.
  ImplicitLocOpBuilder b(getLoc(), builder);
  RowMath rows(b, tensorType(getInput()));
  Value x = rows.wide(getInput()), grad = rows.wide(resultGrads[0]), scale = rows.wide(getScale());
  Value inverse = rows.acrossRow(rows.inverseRoot(rows.mean(rows.mul(x, x)), getEps().convertToDouble()));
  Value normalised = rows.mul(x, inverse);
  Value scaled = rows.mul(grad, rows.acrossRows(scale));
  Value projection = rows.acrossRow(rows.mean(rows.mul(scaled, normalised)));
  operandGrads[0] = rows.gradOf(getInput(), rows.mul(inverse, rows.sub(scaled, rows.mul(normalised, projection))));
  operandGrads[1] = rows.gradOf(getScale(), rows.sumRows(rows.mul(grad, normalised)));
  return success();
}

LogicalResult RmsNormOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                   const Arithmetic &arithmetic) {
  const Arithmetic &a = arithmetic;
  const HostTensor &input = operands[0], &scale = operands[1];
  int64_t width = input.shape.back();
  for (int64_t row = 0; row < input.count(); row += width) {
    double squares = 0;
    for (int64_t i = 0; i < width; ++i)
      squares = a.add(squares, a.multiply(input.data[row + i], input.data[row + i]));
    double inverse = inverseRoot(a, a.divide(squares, static_cast<double>(width)), getEps());
    for (int64_t i = 0; i < width; ++i)
      results[0].data[row + i] = a.multiply(a.multiply(input.data[row + i], inverse), scale.data[i]);
  }
  return success();
}

FactorRule RmsNormOp::factorRule() { return rowRule(*this); }

double RmsNormOp::flops() { return 4.0 * tensorType(getInput()).getNumElements(); }

FusionRole RmsNormOp::fusionRole() { return FusionRole::Row; }

SmallVector<Value> RmsNormOp::decompose(OpBuilder &builder) {
  TensorMath m(builder, *this);
  Value x = m.wide(getInput());
  Value inverse = m.inverseRoot(m.mean(m.mul(x, x)), getEps().convertToDouble());
  Value normalised = m.mul(x, m.acrossRow(inverse, x));
  return {m.narrow(m.mul(normalised, m.acrossRows(m.wide(getScale()), x)), getType())};
}

//===----------------------------------------------------------------------===//
// LayerNormOp
//===----------------------------------------------------------------------===//

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                            SmallVectorImpl<Type> &results) {
  results.push_back(adaptor.getInput().getType());
  return checkNorm(loc, tensorType(adaptor.getInput()), {adaptor.getScale(), adaptor.getBias()},
                   adaptor.getEps().convertToDouble());
}

LogicalResult LayerNormOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  // With r = 1 / sqrt(variance + eps) and n = (x - mean) r: dx = r (s - mean(s) - n mean(s n)) for s = g scale,
  // dscale = sum of g n over rows, dbias = sum of g over rows.
  ImplicitLocOpBuilder b(getLoc(), builder);
  RowMath rows(b, tensorType(getInput()));
  Value x = rows.wide(getInput()), grad = rows.wide(resultGrads[0]), scale = rows.wide(getScale());
  Value centred = rows.sub(x, rows.acrossRow(rows.mean(x)));
  Value inverse = rows.acrossRow(rows.inverseRoot(rows.mean(rows.mul(centred, centred)), getEps().convertToDouble()));
  Value normalised = rows.mul(centred, inverse);
  Value scaled = rows.mul(grad, rows.acrossRows(scale));
  Value projection = rows.acrossRow(rows.mean(rows.mul(scaled, normalised)));
  Value unbiased = rows.sub(scaled, rows.acrossRow(rows.mean(scaled)));
  operandGrads[0] = rows.gradOf(getInput(), rows.mul(inverse, rows.sub(unbiased, rows.mul(normalised, projection))));
  operandGrads[1] = rows.gradOf(getScale(), rows.sumRows(rows.mul(grad, normalised)));
  operandGrads[2] = rows.gradOf(getBias(), rows.sumRows(grad));
  return success();
}

LogicalResult LayerNormOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                     const Arithmetic &arithmetic) {
  const Arithmetic &a = arithmetic;
  const HostTensor &input = operands[0], &scale = operands[1], &bias = operands[2];
  int64_t width = input.shape.back();
  for (int64_t row = 0; row < input.count(); row += width) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < width; ++i)
      sum = a.add(sum, input.data[row + i]);
    double mean = a.divide(sum, static_cast<double>(width));
    for (int64_t i = 0; i < width; ++i) {
      double centred = a.subtract(input.data[row + i], mean);
      squares = a.add(squares, a.multiply(centred, centred));
    }
    double inverse = inverseRoot(a, a.divide(squares, static_cast<double>(width)), getEps());
    for (int64_t i = 0; i < width; ++i) {
      double normal = a.multiply(a.subtract(input.data[row + i], mean), inverse);
      results[0].data[row + i] = a.add(a.multiply(normal, scale.data[i]), bias.data[i]);
    }
  }
  return success();
}

FactorRule LayerNormOp::factorRule() { return rowRule(*this); }

double LayerNormOp::flops() { return 7.0 * tensorType(getInput()).getNumElements(); }

FusionRole LayerNormOp::fusionRole() { return FusionRole::Row; }

SmallVector<Value> LayerNormOp::decompose(OpBuilder &builder) {
  TensorMath m(builder, *this);
  Value x = m.wide(getInput());
  Value centred = m.sub(x, m.acrossRow(m.mean(x), x));
  Value inverse = m.inverseRoot(m.mean(m.mul(centred, centred)), getEps().convertToDouble());
  Value normalised = m.mul(centred, m.acrossRow(inverse, x));
  Value scaled = m.mul(normalised, m.acrossRows(m.wide(getScale()), x));
  return {m.narrow(m.add(scaled, m.acrossRows(m.wide(getBias()), x)), getType())};
}
