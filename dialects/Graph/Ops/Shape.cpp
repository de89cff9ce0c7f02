//===- Shape.cpp - transpose, reshape
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace bowline::graph;

//===----------------------------------------------------------------------===//
// TransposeOp
//===----------------------------------------------------------------------===//

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                            SmallVectorImpl<Type> &results) {
  RankedTensorType input = tensorType(adaptor.getInput());
  if (static_cast<int64_t>(adaptor.getPerm().size()) != input.getRank())
    return emitOptionalError(loc, "'perm' must be a permutation of the operand's ", input.getRank(), " dimensions");
  if (failed(checkDims(loc, "permuted", adaptor.getPerm(), input.getRank(), /*increasing=*/false)))
    return failure();
  SmallVector<int64_t> shape;
  for (int64_t dim : adaptor.getPerm())
    shape.push_back(input.getDimSize(dim));
  results.push_back(RankedTensorType::get(shape, input.getElementType()));
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (llvm::equal(getPerm(), llvm::seq<int64_t>(0, getPerm().size())))
    return getInput();
  return {};
}

LogicalResult TransposeOp::canonicalize(TransposeOp op, PatternRewriter &rewriter) {
  auto inner = op.getInput().getDefiningOp<TransposeOp>();
  if (!inner)
    return failure();
  SmallVector<int64_t> perm;
  for (int64_t dim : op.getPerm())
    perm.push_back(inner.getPerm()[dim]);
  rewriter.replaceOpWithNewOp<TransposeOp>(op, inner.getInput(), perm);
  return success();
}

LogicalResult TransposeOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  SmallVector<int64_t> inverse(getPerm().size());
  for (auto [i, dim] : llvm::enumerate(getPerm()))
    inverse[dim] = i;
  operandGrads[0] = TransposeOp::create(b, resultGrads[0], inverse);
  return success();
}

LogicalResult TransposeOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                     const Arithmetic &) {
  std::vector<int64_t> strides = operands[0].strides();
  int64_t next = 0;
  forEachIndex(results[0].shape, [&](const std::vector<int64_t> &index) {
    int64_t offset = 0;
    for (auto [i, dim] : llvm::enumerate(getPerm()))
      offset += index[i] * strides[dim];
    results[0].data[next++] = operands[0].data[offset];
  });
  return success();
}

FactorRule TransposeOp::factorRule() {
  FactorRule rule;
  FactorRule::TensorFactors input = rule.addDims(tensorType(getInput()).getShape()), result;
  for (int64_t dim : getPerm())
    result.push_back(input[dim]);
  rule.operands = {input};
  rule.results = {result};
  return rule;
}

double TransposeOp::flops() { return 0; }

bool TransposeOp::isAdditive() { return true; }

bool TransposeOp::canSplitDims(bool byRule, ArrayRef<DimSplits>, ArrayRef<DimSplits>) { return byRule; }

void TransposeOp::splitDims(ArrayRef<DimSplits> operands, ArrayRef<DimSplits> results) {
  setPerm(graph::splitDims(operands[0], getPerm()));
  setSplitTypes(*this, results);
}

std::optional<double> TransposeOp::resultPadding(const PaddingContext &context, unsigned) {
  return context.numberIn(0);
}

Precision TransposeOp::precision() { return Precision::Follow; }

FusionRole TransposeOp::fusionRole() { return FusionRole::Alone; }

Element TransposeOp::elementAt(ElementBuilder &elements, ArrayRef<AffineExpr> index) {
  SmallVector<AffineExpr> inner(index.size());
  for (auto [i, dim] : llvm::enumerate(getPerm()))
    inner[dim] = index[i];
  return elements.at(getInput(), inner);
}

//===----------------------------------------------------------------------===//
// ReshapeOp
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  RankedTensorType input = tensorType(getInput()), result = tensorType(getResult());
  if (input.getElementType() != result.getElementType())
    return emitOpError("element types must agree");
  if (input.getNumElements() != result.getNumElements())
    return emitOpError("the element count must not change, but it goes from ")
           << input.getNumElements() << " to " << result.getNumElements();
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getInput()))
    return splat.resizeSplat(cast<ShapedType>(getType()));
  return {};
}

LogicalResult ReshapeOp::canonicalize(ReshapeOp op, PatternRewriter &rewriter) {
  auto inner = op.getInput().getDefiningOp<ReshapeOp>();
  if (!inner)
    return failure();
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getInput());
  return success();
}

LogicalResult ReshapeOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  operandGrads[0] = ReshapeOp::create(b, getInput().getType(), resultGrads[0]);
  return success();
}

LogicalResult ReshapeOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                   const Arithmetic &) {
  results[0].data = operands[0].data;
  return success();
}

FactorRule ReshapeOp::factorRule() {
  return reshapeRule(tensorType(getInput()).getShape(), tensorType(getResult()).getShape());
}

double ReshapeOp::flops() { return 0; }

RepeatCost ReshapeOp::repeatCost() { return RepeatCost::Free; }

bool ReshapeOp::isAdditive() { return true; }

std::optional<double> ReshapeOp::resultPadding(const PaddingContext &context, unsigned) { return context.numberIn(0); }

Precision ReshapeOp::precision() { return Precision::Follow; }

Element ReshapeOp::elementAt(ElementBuilder &elements, ArrayRef<AffineExpr> index) {
  return elements.at(getInput(), elements.reshape(index, getType().getShape(), getInput().getType().getShape()));
}

/// A reshape computes nothing. Where it makes blocks of rows for a sum of blocks, it belongs to the group of that sum,
/// as the rows would have to be stored otherwise.
FusionRole ReshapeOp::fusionRole() {
  bool makesBlocks = (*this)->hasOneUse() && fusionRoleOf(*(*this)->user_begin()) == FusionRole::BlockSum;
  return makesBlocks ? FusionRole::Absorbed : FusionRole::None;
}
