//===- Softcap.cpp - softcap
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

LogicalResult SoftcapOp::verify() {
  double cap = getCap().convertToDouble();
  if (!std::isfinite(cap) || cap <= 0)
    return emitOpError("the cap must be finite and positive, got ") << cap;
  return success();
}

LogicalResult SoftcapOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  // The derivative is 1 - t^2 with t = y / cap = tanh(x / cap).
  TensorMath m(builder, *this);
  Value y = m.wide(getResult());
  Value t = m.mul(y, m.constant(y, 1 / getCap().convertToDouble()));
  Value slope = m.sub(m.constant(t, 1), m.mul(t, t));
  operandGrads[0] = m.narrow(m.mul(m.wide(resultGrads[0]), slope), getType());
  return success();
}

LogicalResult SoftcapOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                   const Arithmetic &a) {
  double cap = a.number(getCap().convertToDouble());
  llvm::transform(operands[0].data, results[0].data.begin(),
                  [&](double x) { return a.multiply(cap, a.tanh(a.divide(x, cap))); });
  return success();
}

FactorRule SoftcapOp::factorRule() { return alignedRule(*this); }

double SoftcapOp::flops() { return 3.0 * tensorType(getResult()).getNumElements(); }

SmallVector<Value> SoftcapOp::decompose(OpBuilder &builder) {
  TensorMath m(builder, *this);
  double cap = getCap().convertToDouble();
  Value x = m.wide(getInput());
  Value inner = m.create<math::TanhOp>(m.mul(x, m.constant(x, 1 / cap)));
  return {m.narrow(m.mul(inner, m.constant(inner, cap)), getType())};
}
