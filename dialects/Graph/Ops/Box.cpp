//===- Box.cpp - slice, pad, concat
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline::graph;

/// `value`, the dimension `dim` of which is one part of a split one, with a dimension of size 1 in front of it.
static Value asPart(Value value, int64_t dim, Operation *user) {
  OpBuilder builder(user);
  SmallVector<int64_t> shape = llvm::to_vector(tensorType(value).getShape());
  shape.insert(shape.begin() + dim, 1);
  return ReshapeOp::create(builder, user->getLoc(), tensorType(value).clone(shape), value);
}

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

LogicalResult SliceOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                 const Arithmetic &) {
  copyBox(operands[0], results[0], getOffsets());
  return success();
}

FactorRule SliceOp::factorRule() { return alignedRule(*this); }

double SliceOp::flops() { return 0; }

double SliceOp::bytesRead(unsigned) { return byteCount(getType()); }

// The slice takes sharded dimensions whole (alignedRule), so each rank takes all of its shard.
void SliceOp::localize(LocalContext &) { setSizes(getType().getShape()); }

bool SliceOp::canSplitDims(bool byRule, ArrayRef<DimSplits> operands, ArrayRef<DimSplits> results) {
  return byRule || llvm::all_of(llvm::seq(getType().getRank()), [&](int64_t dim) {
           const DimSplit &from = operands[0][dim];
           return from.isSplit() == results[0][dim].isSplit() ||
                  (from.isSplit() && from.isPart(getOffsets()[dim], getSizes()[dim]));
         });
}

/// A part that is taken out of a split dimension has a dimension of size 1 in front.
void SliceOp::splitDims(ArrayRef<DimSplits> operands, ArrayRef<DimSplits> results) {
  SmallVector<int64_t> offsets, sizes;
  for (auto [split, offset, size] : llvm::zip_equal(operands[0], getOffsets(), getSizes())) {
    if (!split.isSplit()) {
      offsets.push_back(offset);
      sizes.push_back(size);
      continue;
    }
    offsets.append({offset / split.rest, 0});
    sizes.append({size / split.rest, split.rest});
  }
  RankedTensorType type = getType(), wanted = type.clone(splitShape(results[0], type.getShape()));
  setOffsets(offsets);
  setSizes(sizes);
  getResult().setType(type.clone(sizes));
  if (getType() == wanted)
    return;
  OpBuilder builder(getContext());
  builder.setInsertionPointAfter(*this);
  auto reshape = ReshapeOp::create(builder, getLoc(), wanted, getResult());
  getResult().replaceAllUsesExcept(reshape, reshape);
}

std::optional<double> SliceOp::resultPadding(const PaddingContext &context, unsigned) { return context.numberIn(0); }

void SliceOp::growResult(unsigned, RankedTensorType type) {
  getResult().setType(type);
  setSizes(type.getShape());
}

Precision SliceOp::precision() { return Precision::Follow; }

FusionRole SliceOp::fusionRole() { return FusionRole::Alone; }

/// \p index, moved by \p amounts, times \p sign.
static SmallVector<AffineExpr> moved(ElementBuilder &elements, ArrayRef<AffineExpr> index, ArrayRef<int64_t> amounts,
                                     int64_t sign) {
  SmallVector<AffineExpr> result;
  for (auto [expr, amount] : llvm::zip_equal(index, amounts))
    result.push_back(elements.plus(expr, sign * amount));
  return result;
}

Element SliceOp::elementAt(ElementBuilder &elements, ArrayRef<AffineExpr> index) {
  return elements.at(getInput(), moved(elements, index, getOffsets(), 1));
}

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

LogicalResult PadOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results, const Arithmetic &) {
  std::fill(results[0].data.begin(), results[0].data.end(), 0.0);
  pasteBox(operands[0], results[0], getLow());
  return success();
}

FactorRule PadOp::factorRule() { return alignedRule(*this); }

double PadOp::flops() { return 0; }

bool PadOp::canSplitDims(bool byRule, ArrayRef<DimSplits> operands, ArrayRef<DimSplits> results) {
  return byRule || llvm::all_of(llvm::seq(getType().getRank()), [&](int64_t dim) {
           const DimSplit &to = results[0][dim];
           return operands[0][dim].isSplit() == to.isSplit() ||
                  (to.isSplit() && to.isPart(getLow()[dim], tensorType(getInput()).getDimSize(dim)));
         });
}

/// A part that is put into a split dimension gets a dimension of size 1 in front.
void PadOp::splitDims(ArrayRef<DimSplits> operands, ArrayRef<DimSplits> results) {
  SmallVector<int64_t> low, high;
  for (auto [dim, from, to] : llvm::enumerate(operands[0], results[0])) {
    int64_t before = getLow()[dim], after = getHigh()[dim];
    if (!to.isSplit()) {
      low.push_back(before);
      high.push_back(after);
      continue;
    }
    if (!from.isSplit())
      getInputMutable().assign(asPart(getInput(), splitDim(results[0], static_cast<int64_t>(dim)).front(), *this));
    low.append({before / to.rest, 0});
    high.append({after / to.rest, 0});
  }
  setLow(low);
  setHigh(high);
  setSplitTypes(*this, results);
}

std::optional<double> PadOp::resultPadding(const PaddingContext &context, unsigned) {
  return context.numberIn(0) == 0.0 ? std::optional(0.0) : std::nullopt;
}

Precision PadOp::precision() { return Precision::Follow; }

/// An elementwise operation reads zeros for elements outside of the operand.
Element PadOp::elementAt(ElementBuilder &elements, ArrayRef<AffineExpr> index) {
  IndexBox box;
  for (auto [expr, low, size] : llvm::zip_equal(index, getLow(), getInput().getType().getShape()))
    box.push_back({expr, low, low + size});
  Element inner = elements.at(getInput(), moved(elements, index, getLow(), -1));
  return inner ? elements.choose(getType().getElementType(), box, inner) : inner;
}

FusionRole PadOp::fusionRole() {
  bool isRead = (*this)->hasOneUse() && fusionRoleOf(*(*this)->user_begin()) == FusionRole::Elementwise;
  return isRead ? FusionRole::Absorbed : FusionRole::Alone;
}

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

LogicalResult ConcatOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                  const Arithmetic &) {
  SmallVector<int64_t> offsets(results[0].rank(), 0);
  for (const HostTensor &operand : operands) {
    pasteBox(operand, results[0], offsets);
    offsets[getDim()] += operand.shape[getDim()];
  }
  return success();
}

FactorRule ConcatOp::factorRule() { return alignedRule(*this); }

double ConcatOp::flops() { return 0; }

bool ConcatOp::canSplitDims(bool byRule, ArrayRef<DimSplits> operands, ArrayRef<DimSplits> results) {
  int64_t dim = getDim();
  const DimSplit &joined = results[0][dim];
  if (!joined.isSplit())
    return byRule;
  return llvm::all_of(llvm::enumerate(getInputs()), [&](auto input) {
    return joined.isPart(0, tensorType(input.value()).getDimSize(dim)) && !operands[input.index()][dim].isSplit();
  });
}

void ConcatOp::splitDims(ArrayRef<DimSplits> operands, ArrayRef<DimSplits> results) {
  int64_t dim = getDim(), joined = splitDim(results[0], dim).front();
  if (results[0][dim].isSplit())
    for (OpOperand &operand : (*this)->getOpOperands())
      operand.set(asPart(operand.get(), joined, *this));
  setDim(joined);
  setSplitTypes(*this, results);
}

std::optional<double> ConcatOp::resultPadding(const PaddingContext &context, unsigned) {
  bool isZero =
      llvm::all_of(llvm::seq((*this)->getNumOperands()), [&](unsigned i) { return context.numberIn(i) == 0.0; });
  return isZero ? std::optional(0.0) : std::nullopt;
}

Precision ConcatOp::precision() { return Precision::Follow; }

FusionRole ConcatOp::fusionRole() { return FusionRole::Alone; }

Element ConcatOp::elementAt(ElementBuilder &elements, ArrayRef<AffineExpr> index) {
  SmallVector<IndexBox> boxes;
  SmallVector<Element> parts;
  const auto dim = static_cast<int64_t>(getDim());
  int64_t offset = 0;
  for (Value input : getInputs()) {
    SmallVector<AffineExpr> inner(index);
    inner[dim] = elements.plus(index[dim], -offset);
    int64_t end = offset + cast<RankedTensorType>(input.getType()).getDimSize(dim);
    boxes.push_back({{index[dim], offset, end}});
    parts.push_back(elements.at(input, inner));
    if (!parts.back())
      return {};
    offset = end;
  }
  return elements.choose(getType().getElementType(), boxes, parts);
}
