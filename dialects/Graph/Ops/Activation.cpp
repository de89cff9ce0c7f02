//===- Activation.cpp - logistic, silu, gelu
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/TensorMath.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace bowline::graph;

static const double kSqrtTwoOverPi = std::sqrt(2 / std::numbers::pi);
static constexpr double kGeluCubic = 0.044715;

template <typename Function>
static LogicalResult mapElements(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                 Function function) {
  llvm::transform(operands[0].data, results[0].data.begin(), function);
  return success();
}

//===----------------------------------------------------------------------===//
// LogisticOp
//===----------------------------------------------------------------------===//

LogicalResult LogisticOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  Value one = constantLike(b, getType(), 1.0);
  Value slope = arith::MulFOp::create(b, getResult(), arith::SubFOp::create(b, one, getResult()));
  operandGrads[0] = arith::MulFOp::create(b, resultGrads[0], slope);
  return success();
}

LogicalResult LogisticOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                    const Arithmetic &arithmetic) {
  return mapElements(operands, results, [&](double x) { return arithmetic.logistic(x); });
}

FactorRule LogisticOp::factorRule() { return alignedRule(*this); }

double LogisticOp::flops() { return 3.0 * tensorType(getResult()).getNumElements(); }

SmallVector<Value> LogisticOp::decompose(OpBuilder &builder) {
  return {TensorMath(builder, *this).logistic(getInput())};
}

//===----------------------------------------------------------------------===//
// SiluOp
//===----------------------------------------------------------------------===//

LogicalResult SiluOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  // The derivative is s + x s (1 - s) with s = logistic(x).
  ImplicitLocOpBuilder b(getLoc(), builder);
  Value one = constantLike(b, getType(), 1.0);
  Value gate = LogisticOp::create(b, getInput());
  Value tail = arith::MulFOp::create(b, getInput(), arith::SubFOp::create(b, one, gate));
  Value slope = arith::MulFOp::create(b, gate, arith::AddFOp::create(b, one, tail));
  operandGrads[0] = arith::MulFOp::create(b, resultGrads[0], slope);
  return success();
}

LogicalResult SiluOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                const Arithmetic &arithmetic) {
  return mapElements(operands, results, [&](double x) { return arithmetic.multiply(x, arithmetic.logistic(x)); });
}

FactorRule SiluOp::factorRule() { return alignedRule(*this); }

double SiluOp::flops() { return 4.0 * tensorType(getResult()).getNumElements(); }

SmallVector<Value> SiluOp::decompose(OpBuilder &builder) {
  TensorMath m(builder, *this);
  return {m.mul(m.finiteBelow(getInput()), m.logistic(getInput()))};
}

//===----------------------------------------------------------------------===//
// GeluOp
//===----------------------------------------------------------------------===//

LogicalResult GeluOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  // The derivative is computed in f32 or wider: bf16 cannot represent its constants.
  TensorMath m(builder, *this);
  Value x = m.wide(getInput());
  auto constant = [&](double value) { return m.constant(x, value); };
  Value square = m.mul(x, x), slope;
  if (getKind() == GeluKind::Erf) {
    // The derivative is Phi(x) + x phi(x), with the normal distribution's cumulative and density functions.
    Value erf = m.create<math::ErfOp>(m.mul(x, constant(std::numbers::sqrt2 / 2)));
    Value cumulative = m.mul(constant(0.5), m.add(constant(1), erf));
    Value exponential = m.create<math::ExpOp>(m.mul(constant(-0.5), square));
    Value density = m.mul(constant(1 / std::sqrt(2 * std::numbers::pi)), exponential);
    slope = m.add(cumulative, m.mul(x, density));
  } else {
    // The derivative is (1 + t) / 2 + x (1 - t^2) / 2 * u', with t = tanh(u).
    Value inner = m.mul(m.mul(constant(kSqrtTwoOverPi), x), m.add(constant(1), m.mul(constant(kGeluCubic), square)));
    Value tanh = m.create<math::TanhOp>(inner);
    Value innerSlope = m.mul(constant(kSqrtTwoOverPi), m.add(constant(1), m.mul(constant(3 * kGeluCubic), square)));
    Value tanhSlope = m.sub(constant(1), m.mul(tanh, tanh));
    slope = m.mul(constant(0.5), m.add(m.add(constant(1), tanh), m.mul(x, m.mul(tanhSlope, innerSlope))));
  }
  operandGrads[0] = m.narrow(m.mul(m.wide(resultGrads[0]), slope), getType());
  return success();
}

LogicalResult GeluOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                const Arithmetic &arithmetic) {
  const Arithmetic &a = arithmetic;
  auto half = [&](double x, double inner) { return a.multiply(a.divide(x, 2), a.add(1, inner)); };
  if (getKind() == GeluKind::Erf)
    return mapElements(operands, results,
                       [&](double x) { return half(x, a.erf(a.divide(x, a.number(std::numbers::sqrt2)))); });
  return mapElements(operands, results, [&](double x) {
    double cube = a.multiply(a.multiply(a.multiply(a.number(kGeluCubic), x), x), x);
    return half(x, a.tanh(a.multiply(a.number(kSqrtTwoOverPi), a.add(x, cube))));
  });
}

FactorRule GeluOp::factorRule() { return alignedRule(*this); }

double GeluOp::flops() { return 8.0 * tensorType(getResult()).getNumElements(); }

SmallVector<Value> GeluOp::decompose(OpBuilder &builder) {
  TensorMath m(builder, *this);
  Value x = m.wide(getInput()), result;
  if (getKind() == GeluKind::Erf) {
    Value inner = m.marked(m.create<math::ErfOp>(m.mul(x, m.constant(x, std::numbers::sqrt2 / 2))), kBesideOne);
    Value half = m.mul(m.constant(x, 0.5), m.finiteBelow(x));
    result = m.add(m.mul(half, inner), half);
  } else {
    // (1 + tanh u) / 2 is the logistic function of 2 u.
    Value cubic = m.add(m.constant(x, 1), m.mul(m.constant(x, kGeluCubic), m.mul(x, x)));
    result = m.mul(m.finiteBelow(x), m.logistic(m.mul(m.mul(m.constant(x, 2 * kSqrtTwoOverPi), x), cubic)));
  }
  return {m.narrow(result, getType())};
}
