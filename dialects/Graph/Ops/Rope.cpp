//===- Rope.cpp - rope_angles, rope
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

//===----------------------------------------------------------------------===//
// RopeAnglesOp
//===----------------------------------------------------------------------===//

LogicalResult RopeAnglesOp::verify() {
  RankedTensorType positions = tensorType(getPositions()), cosine = tensorType(getCosine());
  if (positions.getRank() != 1)
    return emitOpError("positions must have one dimension, got ") << positions;
  if (cosine != getSine().getType() || cosine.getRank() != 2 || cosine.getDimSize(0) != positions.getDimSize(0))
    return emitOpError("both results must have the same shape [")
           << positions.getDimSize(0) << ", half of the head dimension]";
  double theta = getTheta().convertToDouble();
  if (!std::isfinite(theta) || theta <= 0)
    return emitOpError("theta must be finite and positive");
  return success();
}

LogicalResult RopeAnglesOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                      const Arithmetic &arithmetic) {
  int64_t half = results[0].shape[1];
  SmallVector<double> frequencies;
  for (int64_t i = 0; i < half; ++i) {
    double frequency = std::pow(getTheta().convertToDouble(), -static_cast<double>(i) / half);
    frequencies.push_back(getScaling() ? getScaling()->scale(frequency) : frequency);
  }
  for (auto [s, position] : llvm::enumerate(operands[0].data))
    for (int64_t i = 0; i < half; ++i) {
      double angle = position * frequencies[i];
      results[0].data[s * half + i] = arithmetic.number(std::cos(angle));
      results[1].data[s * half + i] = arithmetic.number(std::sin(angle));
    }
  return success();
}

FactorRule RopeAnglesOp::factorRule() {
  FactorRule rule;
  int64_t length = rule.add(tensorType(getCosine()).getDimSize(0));
  int64_t half = rule.add(tensorType(getCosine()).getDimSize(1), FactorRule::Kind::Blocked);
  rule.operands = {{{length}}};
  rule.results = {{{length}, {half}}, {{length}, {half}}};
  return rule;
}

double RopeAnglesOp::flops() { return 4.0 * tensorType(getCosine()).getNumElements(); }

StringRef RopeAnglesOp::kernelName() { return "rope_angles"; }

DictionaryAttr RopeAnglesOp::kernelConfig(bool) {
  KernelConfig config(getContext());
  config.real("theta", getTheta().convertToDouble());
  if (std::optional<RopeScalingAttr> scaling = getScaling()) {
    config.real("factor", scaling->getFactor());
    if (scaling->isByTurns())
      config.integer("original_positions", scaling->getOriginal())
          .real("low_turns", scaling->getLow())
          .real("high_turns", scaling->getHigh());
  }
  return config.get();
}

LogicalResult RopeAnglesOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use, ValueRange operands,
                                            SmallVectorImpl<Value> &results) {
  auto real = [&](StringRef name) { return use.real(name).convertToDouble(); };
  RopeScalingAttr scaling;
  if (use.config.contains("original_positions"))
    scaling = RopeScalingAttr::get(builder.getContext(), real("factor"), use.integer("original_positions"),
                                   real("low_turns"), real("high_turns"));
  else if (use.config.contains("factor"))
    scaling = RopeScalingAttr::get(builder.getContext(), real("factor"));
  auto op = RopeAnglesOp::create(builder, use.results[0], use.results[1], operands[0], use.real("theta"), scaling);
  llvm::append_range(results, op->getResults());
  return success();
}

//===----------------------------------------------------------------------===//
// RopeOp
//===----------------------------------------------------------------------===//

LogicalResult RopeOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                       SmallVectorImpl<Type> &results) {
  RankedTensorType input = tensorType(adaptor.getInput()), cosine = tensorType(adaptor.getCosine());
  if (input.getRank() != 4 || input.getDimSize(3) % 2 != 0)
    return emitOptionalError(loc, "the input must have four dimensions, the last one even, got ", input);
  int64_t tableShape[] = {input.getDimSize(1), input.getDimSize(3) / 2};
  if (cosine != adaptor.getSine().getType() || cosine.getShape() != ArrayRef<int64_t>(tableShape))
    return emitOptionalError(loc, "cosine and sine must both have shape [", tableShape[0], ", ", tableShape[1], "]");
  if (cosine.getElementType() != input.getElementType() &&
      cosine.getElementType() != statisticsType(input.getElementType()))
    return emitOptionalError(loc, "element types must agree, or cosine and sine be f32 for a narrower input");
  results.push_back(input);
  return success();
}

LogicalResult RopeOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  operandGrads[0] = RopeOp::create(b, resultGrads[0], getCosine(), getSine(), !getInverse());
  return success();
}

LogicalResult RopeOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                const Arithmetic &arithmetic) {
  const Arithmetic &a = arithmetic;
  const HostTensor &input = operands[0], &cosine = operands[1], &sine = operands[2];
  int64_t length = input.shape[1], heads = input.shape[2], width = input.shape[3], half = width / 2;
  for (int64_t row = 0; row < input.count() / width; ++row) {
    int64_t position = row / heads % length;
    for (int64_t i = 0; i < half; ++i) {
      double c = cosine.data[position * half + i], s = sine.data[position * half + i];
      if (getInverse())
        s = a.negative(s);
      double low = input.data[row * width + i], high = input.data[row * width + i + half];
      results[0].data[row * width + i] = a.subtract(a.multiply(low, c), a.multiply(high, s));
      results[0].data[row * width + i + half] = a.add(a.multiply(high, c), a.multiply(low, s));
    }
  }
  return success();
}

FactorRule RopeOp::factorRule() {
  FactorRule rule;
  ArrayRef<int64_t> shape = tensorType(getInput()).getShape();
  FactorRule::TensorFactors input = rule.addDims(shape.drop_back());
  // The last dimension is pairs of elements half of it apart.
  input.push_back({rule.add(shape[3], FactorRule::Kind::Blocked)});
  FactorRule::TensorFactors angles = {input[1], {rule.add(shape[3] / 2, FactorRule::Kind::Blocked)}};
  rule.operands = {input, angles, angles};
  rule.results = {input};
  return rule;
}

double RopeOp::flops() { return 3.0 * tensorType(getInput()).getNumElements(); }

Precision RopeOp::precision() { return Precision::Follow; }

bool RopeOp::isWideOperand(unsigned operand) { return operand > 0; } // angles

FusionRole RopeOp::fusionRole() { return FusionRole::Alone; }

SmallVector<Value> RopeOp::decompose(OpBuilder &builder) {
  TensorMath m(builder, *this);
  Value x = m.wide(getInput());
  SmallVector<int64_t> sizes = llvm::to_vector(tensorType(x).getShape());
  int64_t half = sizes[3] /= 2;
  Value low = m.create<SliceOp>(x, ArrayRef<int64_t>{0, 0, 0, 0}, sizes);
  Value high = m.create<SliceOp>(x, ArrayRef<int64_t>{0, 0, 0, half}, sizes);
  Value cosine = m.broadcast(m.wide(getCosine()), low, {1, 3}), sine = m.broadcast(m.wide(getSine()), low, {1, 3});
  if (getInverse())
    sine = m.create<arith::NegFOp>(sine);
  Value rotatedLow = m.sub(m.mul(low, cosine), m.mul(high, sine));
  Value rotatedHigh = m.add(m.mul(high, cosine), m.mul(low, sine));
  return {m.narrow(m.create<ConcatOp>(ValueRange{rotatedLow, rotatedHigh}, int64_t(3)), getType())};
}
