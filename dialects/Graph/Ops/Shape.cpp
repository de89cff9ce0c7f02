//===- Shape.cpp - transpose, reshape, slice, pad, concat
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

LogicalResult TransposeOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
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

LogicalResult ReshapeOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  results[0].data = operands[0].data;
  return success();
}

FactorRule ReshapeOp::factorRule() {
  return reshapeRule(tensorType(getInput()).getShape(), tensorType(getResult()).getShape());
}

double ReshapeOp::flops() { return 0; }

//===----------------------------------------------------------------------===//
// SliceOp
//===----------------------------------------------------------------------===//

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                        SmallVectorImpl<Type> &results) {
  RankedTensorType input = tensorType(adaptor.getInput());
  size_t rank = input.getRank();
  if (adaptor.getOffsets().size() != rank || adaptor.getSizes().size() != rank)
    return emitOptionalError(loc, "needs one offset and one size for each of ", rank, " dimensions");
  for (auto [dim, offset, size] : llvm::enumerate(adaptor.getOffsets(), adaptor.getSizes()))
    if (offset < 0 || size < 1 || size > input.getDimSize(dim) || offset > input.getDimSize(dim) - size) {
      int64_t end = 0;
      if (llvm::AddOverflow(offset, size, end))
        end = std::numeric_limits<int64_t>::max();
      return emitOptionalError(loc, "the range [", offset, ", ", end, ") of dimension ", dim,
                               " is empty or outside of its size ", input.getDimSize(dim));
    }
  results.push_back(RankedTensorType::get(adaptor.getSizes(), input.getElementType()));
  return success();
}

OpFoldResult SliceOp::fold(FoldAdaptor) { return getInput().getType() == getType() ? getInput() : Value(); }

LogicalResult SliceOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  SmallVector<int64_t> high;
  for (auto [total, offset, size] : llvm::zip_equal(tensorType(getInput()).getShape(), getOffsets(), getSizes()))
    high.push_back(total - offset - size);
  operandGrads[0] = PadOp::create(b, resultGrads[0], getOffsets(), high);
  return success();
}

/// Copies the box of `to`'s shape that starts at `offsets` in `from`.
static void copyBox(const HostTensor &from, HostTensor &to, ArrayRef<int64_t> offsets) {
  std::vector<int64_t> strides = from.strides();
  int64_t next = 0;
  forEachIndex(to.shape, [&](const std::vector<int64_t> &index) {
    int64_t offset = 0;
    for (auto [dim, start] : llvm::enumerate(offsets))
      offset += (index[dim] + start) * strides[dim];
    to.data[next++] = from.data[offset];
  });
}

/// Copies all of `from` into the box of `to` that starts at `offsets`.
static void pasteBox(const HostTensor &from, HostTensor &to, ArrayRef<int64_t> offsets) {
  std::vector<int64_t> strides = to.strides();
  int64_t next = 0;
  forEachIndex(from.shape, [&](const std::vector<int64_t> &index) {
    int64_t offset = 0;
    for (auto [dim, start] : llvm::enumerate(offsets))
      offset += (index[dim] + start) * strides[dim];
    to.data[offset] = from.data[next++];
  });
}

LogicalResult SliceOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  copyBox(operands[0], results[0], getOffsets());
  return success();
}

FactorRule SliceOp::factorRule() { return alignedRule(*this); }

double SliceOp::flops() { return 0; }

//===----------------------------------------------------------------------===//
// PadOp
//===----------------------------------------------------------------------===//

LogicalResult PadOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                      SmallVectorImpl<Type> &results) {
  RankedTensorType input = tensorType(adaptor.getInput());
  size_t rank = input.getRank();
  if (adaptor.getLow().size() != rank || adaptor.getHigh().size() != rank)
    return emitOptionalError(loc, "needs one amount on each side for each of ", rank, " dimensions");
  SmallVector<int64_t> shape;
  for (auto [dim, size, low, high] : llvm::enumerate(input.getShape(), adaptor.getLow(), adaptor.getHigh())) {
    if (low < 0 || high < 0)
      return emitOptionalError(loc, "amounts of padding must not be negative");
    int64_t padded;
    if (llvm::AddOverflow(low, size, padded) || llvm::AddOverflow(padded, high, padded))
      return emitOptionalError(loc, "dimension ", dim, " padded by ", low, " and ", high, " is larger than any tensor");
    shape.push_back(padded);
  }
  results.push_back(RankedTensorType::get(shape, input.getElementType()));
  return success();
}

LogicalResult PadOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  operandGrads[0] = SliceOp::create(b, resultGrads[0], getLow(), tensorType(getInput()).getShape());
  return success();
}

LogicalResult PadOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  std::fill(results[0].data.begin(), results[0].data.end(), 0.0);
  pasteBox(operands[0], results[0], getLow());
  return success();
}

FactorRule PadOp::factorRule() { return alignedRule(*this); }

double PadOp::flops() { return 0; }

//===----------------------------------------------------------------------===//
// ConcatOp
//===----------------------------------------------------------------------===//

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                         SmallVectorImpl<Type> &results) {
  if (adaptor.getInputs().empty())
    return emitOptionalError(loc, "needs at least one operand");
  RankedTensorType first = tensorType(adaptor.getInputs().front());
  int64_t dim = adaptor.getDim();
  if (failed(checkDims(loc, "concatenated", dim, first.getRank(), /*increasing=*/true)))
    return failure();
  SmallVector<int64_t> shape = llvm::to_vector(first.getShape());
  for (Value input : adaptor.getInputs().drop_front()) {
    RankedTensorType type = tensorType(input);
    if (type.getElementType() != first.getElementType() || type.getRank() != first.getRank() ||
        withoutDims(type.getShape(), dim) != withoutDims(first.getShape(), dim))
      return emitOptionalError(loc, "operands may differ only along dimension ", dim, ", got ", type, " after ", first);
    shape[dim] += type.getDimSize(dim);
  }
  results.push_back(RankedTensorType::get(shape, first.getElementType()));
  return success();
}

OpFoldResult ConcatOp::fold(FoldAdaptor) { return getInputs().size() == 1 ? getInputs().front() : Value(); }

LogicalResult ConcatOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  SmallVector<int64_t> offsets(tensorType(getResult()).getRank(), 0);
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    ArrayRef<int64_t> sizes = tensorType(input).getShape();
    operandGrads[i] = SliceOp::create(b, resultGrads[0], offsets, sizes);
    offsets[getDim()] += sizes[getDim()];
  }
  return success();
}

LogicalResult ConcatOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  SmallVector<int64_t> offsets(results[0].rank(), 0);
  for (const HostTensor &operand : operands) {
    pasteBox(operand, results[0], offsets);
    offsets[getDim()] += operand.shape[getDim()];
  }
  return success();
}

FactorRule ConcatOp::factorRule() { return alignedRule(*this); }

double ConcatOp::flops() { return 0; }
