//===- Reduction.cpp - reduce, broadcast
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace bowline::graph;

//===----------------------------------------------------------------------===//
// ReduceOp
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                         SmallVectorImpl<Type> &results) {
  RankedTensorType input = tensorType(adaptor.getInput());
  if (failed(checkDims(loc, "reduced", adaptor.getDims(), input.getRank(), /*increasing=*/true)))
    return failure();
  results.push_back(RankedTensorType::get(withoutDims(input.getShape(), adaptor.getDims()), input.getElementType()));
  return success();
}

LogicalResult ReduceOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RankedTensorType type = tensorType(getInput());
  Value grad = broadcastAlong(b, resultGrads[0], type, getDims());
  if (getKind() == ReduceKind::Max) {
    Value maximum = broadcastAlong(b, getResult(), type, getDims());
    Value isMaximum = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, getInput(), maximum);
    grad = arith::SelectOp::create(b, isMaximum, grad, constantLike(b, type, 0.0));
  }
  operandGrads[0] = grad;
  return success();
}

LogicalResult ReduceOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  bool isSum = getKind() == ReduceKind::Sum;
  HostTensor &result = results[0];
  std::fill(result.data.begin(), result.data.end(), isSum ? 0.0 : -std::numeric_limits<double>::infinity());
  std::vector<int64_t> strides = result.strides();
  SmallVector<int64_t> kept = otherDims(operands[0].rank(), getDims());
  int64_t next = 0;
  forEachIndex(operands[0].shape, [&](const std::vector<int64_t> &index) {
    int64_t offset = 0;
    for (auto [i, dim] : llvm::enumerate(kept))
      offset += index[dim] * strides[i];
    double value = operands[0].data[next++];
    double &combined = result.data[offset];
    if (isSum)
      combined += value;
    else if (!(value <= combined)) // a NaN wins and stays
      combined = std::isnan(combined) ? combined : value;
  });
  return success();
}

FactorRule ReduceOp::factorRule() {
  FactorRule rule;
  FactorRule::TensorFactors input, result;
  for (auto [dim, size] : llvm::enumerate(tensorType(getInput()).getShape())) {
    bool isReduced = llvm::is_contained(getDims(), static_cast<int64_t>(dim));
    input.push_back({isReduced ? rule.add(size, FactorRule::Kind::Reduction, getKind()) : rule.add(size)});
    if (!isReduced)
      result.push_back(input.back());
  }
  rule.operands = {input};
  rule.results = {result};
  return rule;
}

double ReduceOp::flops() { return tensorType(getInput()).getNumElements(); }

//===----------------------------------------------------------------------===//
// BroadcastOp
//===----------------------------------------------------------------------===//

LogicalResult BroadcastOp::verify() {
  RankedTensorType input = tensorType(getInput()), result = tensorType(getResult());
  if (static_cast<int64_t>(getDims().size()) != input.getRank())
    return emitOpError("needs one entry of 'dims' per operand dimension");
  if (failed(checkDims(getLoc(), "broadcast", getDims(), result.getRank(), /*increasing=*/true)))
    return failure();
  if (input.getElementType() != result.getElementType())
    return emitOpError("element types must agree");
  for (auto [i, dim] : llvm::enumerate(getDims()))
    if (input.getDimSize(i) != result.getDimSize(dim))
      return emitOpError("operand dimension ")
             << i << " of size " << input.getDimSize(i) << " does not fit result dimension " << dim << " of size "
             << result.getDimSize(dim);
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getInput()))
    return splat.resizeSplat(cast<ShapedType>(getType()));
  return {};
}

LogicalResult BroadcastOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  operandGrads[0] = sumOver(b, resultGrads[0], otherDims(tensorType(getResult()).getRank(), getDims()));
  return success();
}

LogicalResult BroadcastOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  std::vector<int64_t> strides = operands[0].strides();
  int64_t next = 0;
  forEachIndex(results[0].shape, [&](const std::vector<int64_t> &index) {
    int64_t offset = 0;
    for (auto [i, dim] : llvm::enumerate(getDims()))
      offset += index[dim] * strides[i];
    results[0].data[next++] = operands[0].data[offset];
  });
  return success();
}

FactorRule BroadcastOp::factorRule() {
  FactorRule rule;
  FactorRule::TensorFactors input, result = rule.addDims(tensorType(getResult()).getShape());
  for (int64_t dim : getDims())
    input.push_back(result[dim]);
  rule.operands = {input};
  rule.results = {result};
  return rule;
}

double BroadcastOp::flops() { return 0; }
