//===- Activation.cpp - logistic, silu, gelu
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace bowline::graph;

static double logistic(double x) { return 1 / (1 + std::exp(-x)); }

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

LogicalResult LogisticOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  return mapElements(operands, results, logistic);
}

FactorRule LogisticOp::factorRule() { return alignedRule(*this); }

double LogisticOp::flops() { return 3.0 * tensorType(getResult()).getNumElements(); }

//===----------------------------------------------------------------------===//
// SiluOp
//===----------------------------------------------------------------------===//

LogicalResult SiluOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  // With s = logistic(x): s + x s (1 - s).
  ImplicitLocOpBuilder b(getLoc(), builder);
  Value one = constantLike(b, getType(), 1.0);
  Value gate = LogisticOp::create(b, getInput());
  Value tail = arith::MulFOp::create(b, getInput(), arith::SubFOp::create(b, one, gate));
  Value slope = arith::MulFOp::create(b, gate, arith::AddFOp::create(b, one, tail));
  operandGrads[0] = arith::MulFOp::create(b, resultGrads[0], slope);
  return success();
}

LogicalResult SiluOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  return mapElements(operands, results, [](double x) { return x * logistic(x); });
}

FactorRule SiluOp::factorRule() { return alignedRule(*this); }

double SiluOp::flops() { return 4.0 * tensorType(getResult()).getNumElements(); }

//===----------------------------------------------------------------------===//
// GeluOp
//===----------------------------------------------------------------------===//

LogicalResult GeluOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  auto constant = [&](double value) { return constantLike(b, getType(), value); };
  auto mul = [&](Value lhs, Value rhs) -> Value { return arith::MulFOp::create(b, lhs, rhs); };
  auto add = [&](Value lhs, Value rhs) -> Value { return arith::AddFOp::create(b, lhs, rhs); };
  Value x = getInput(), square = mul(x, x), slope;
  if (getKind() == GeluKind::Erf) {
    // Phi(x) + x phi(x), with the normal distribution's cumulative and density functions.
    Value erf = math::ErfOp::create(b, mul(x, constant(std::numbers::sqrt2 / 2)));
    Value cumulative = mul(constant(0.5), add(constant(1), erf));
    Value exponential = math::ExpOp::create(b, mul(constant(-0.5), square));
    Value density = mul(constant(1 / std::sqrt(2 * std::numbers::pi)), exponential);
    slope = add(cumulative, mul(x, density));
  } else {
    // (1 + t) / 2 + x (1 - t^2) / 2 * u', with t = tanh(u).
    Value inner = mul(mul(constant(kSqrtTwoOverPi), x), add(constant(1), mul(constant(kGeluCubic), square)));
    Value tanh = math::TanhOp::create(b, inner);
    Value innerSlope = mul(constant(kSqrtTwoOverPi), add(constant(1), mul(constant(3 * kGeluCubic), square)));
    Value tanhSlope = arith::SubFOp::create(b, constant(1), mul(tanh, tanh));
    slope = mul(constant(0.5), add(add(constant(1), tanh), mul(x, mul(tanhSlope, innerSlope))));
  }
  operandGrads[0] = mul(resultGrads[0], slope);
  return success();
}

LogicalResult GeluOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  if (getKind() == GeluKind::Erf)
    return mapElements(operands, results, [](double x) { return x / 2 * (1 + std::erf(x / std::numbers::sqrt2)); });
  return mapElements(operands, results,
                     [](double x) { return x / 2 * (1 + std::tanh(kSqrtTwoOverPi * (x + kGeluCubic * x * x * x))); });
}

FactorRule GeluOp::factorRule() { return alignedRule(*this); }

double GeluOp::flops() { return 8.0 * tensorType(getResult()).getNumElements(); }
