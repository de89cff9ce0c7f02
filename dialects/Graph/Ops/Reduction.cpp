//===- Reduction.cpp - reduce, broadcast
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

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

LogicalResult ReduceOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                  const Arithmetic &arithmetic) {
  const Arithmetic &numbers = arithmetic.of(getType().getElementType());
  bool isSum = getKind() == ReduceKind::Sum;
  const HostTensor &input = operands[0];
  SmallVector<int64_t> inner = input.offsetsAlong(getDims());
  SmallVector<int64_t> outer = input.offsetsAlong(otherDims(input.rank(), getDims()));
  for (auto [result, offset] : llvm::zip_equal(results[0].data, outer)) {
    result = isSum ? 0.0 : -std::numeric_limits<double>::infinity();
    for (int64_t step : inner) {
      double value = input.data[offset + step];
      result = isSum ? numbers.add(result, value) : numbers.maximum(result, value);
    }
  }
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

bool ReduceOp::isAdditive() { return getKind() == ReduceKind::Sum; }

bool ReduceOp::canSplitDims(bool byRule, ArrayRef<DimSplits>, ArrayRef<DimSplits>) { return byRule; }

void ReduceOp::splitDims(ArrayRef<DimSplits> operands, ArrayRef<DimSplits> results) {
  setDims(graph::splitDims(operands[0], getDims()));
  setSplitTypes(*this, results);
}

bool ReduceOp::hasNeutralPadding() { return true; }

void ReduceOp::requireNeutralPadding(PaddingContext &context) {
  if (!llvm::is_contained(getDims(), context.dimOfOperand(0)))
    return;
  Type element = getType().getElementType();
  context.require(0, getKind() == ReduceKind::Sum ? 0.0 : absentLogit(element));
}

std::optional<double> ReduceOp::resultPadding(const PaddingContext &context, unsigned) {
  return context.numberIn(0) == 0.0 ? std::optional(0.0) : std::nullopt;
}

/// The reshape of rows to [blocks, rows, columns] whose blocks `op` sums, as split-column-reductions makes them; null
/// for any other reduction.
static ReshapeOp blocksOf(ReduceOp op) {
  if (op.getKind() != ReduceKind::Sum || op.getDims() != ArrayRef<int64_t>{1} ||
      tensorType(op.getInput()).getRank() != 3)
    return {};
  auto blocks = op.getInput().getDefiningOp<ReshapeOp>();
  bool keepsRows = blocks && blocks->hasOneUse() && tensorType(blocks.getInput()).getRank() > 0 &&
                   tensorType(blocks.getInput()).getShape().back() == tensorType(op.getInput()).getShape().back();
  return keepsRows ? blocks : ReshapeOp();
}

FusionRole ReduceOp::fusionRole() {
  if (getDims() == ArrayRef<int64_t>{tensorType(getInput()).getRank() - 1})
    return FusionRole::Row;
  return blocksOf(*this) ? FusionRole::BlockSum : FusionRole::Alone;
}

Element ReduceOp::elementAt(ElementBuilder &elements, ArrayRef<AffineExpr> index) {
  return elements.reduce(getInput(), getDims(), index, getKind() == ReduceKind::Sum, (*this)->hasAttr(kIgnoresNan));
}

ArrayRef<int64_t> ReduceOp::fusionDomain() {
  ReshapeOp blocks = blocksOf(*this);
  return tensorType(blocks ? blocks.getInput() : getInput()).getShape();
}

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

LogicalResult BroadcastOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                     const Arithmetic &) {
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

RepeatCost BroadcastOp::repeatCost() { return RepeatCost::Free; }

bool BroadcastOp::canSplitDims(bool byRule, ArrayRef<DimSplits>, ArrayRef<DimSplits>) { return byRule; }

void BroadcastOp::splitDims(ArrayRef<DimSplits>, ArrayRef<DimSplits> results) {
  setDims(graph::splitDims(results[0], getDims()));
  setSplitTypes(*this, results);
}

std::optional<double> BroadcastOp::resultPadding(const PaddingContext &context, unsigned) {
  return context.numberIn(0);
}

Precision BroadcastOp::precision() { return Precision::Follow; }

FusionRole BroadcastOp::fusionRole() { return FusionRole::Repeated; }

Element BroadcastOp::elementAt(ElementBuilder &elements, ArrayRef<AffineExpr> index) {
  return elements.at(getInput(), llvm::map_to_vector(getDims(), [&](int64_t dim) { return index[dim]; }));
}
