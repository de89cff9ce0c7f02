//===- Rope.cpp - rope_angles, rope
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"

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

LogicalResult RopeAnglesOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  int64_t half = results[0].shape[1];
  for (auto [s, position] : llvm::enumerate(operands[0].data))
    for (int64_t i = 0; i < half; ++i) {
      double angle = position * std::pow(getTheta().convertToDouble(), -static_cast<double>(i) / half);
      results[0].data[s * half + i] = std::cos(angle);
      results[1].data[s * half + i] = std::sin(angle);
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

LogicalResult RopeOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  const HostTensor &input = operands[0], &cosine = operands[1], &sine = operands[2];
  int64_t length = input.shape[1], heads = input.shape[2], width = input.shape[3], half = width / 2;
  for (int64_t row = 0; row < input.count() / width; ++row) {
    int64_t position = row / heads % length;
    for (int64_t i = 0; i < half; ++i) {
      double c = cosine.data[position * half + i];
      double s = sine.data[position * half + i] * (getInverse() ? -1 : 1);
      double low = input.data[row * width + i], high = input.data[row * width + i + half];
      results[0].data[row * width + i] = low * c - high * s;
      results[0].data[row * width + i + half] = high * c + low * s;
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
