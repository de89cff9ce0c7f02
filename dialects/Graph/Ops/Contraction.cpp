//===- Contraction.cpp - dot_general
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"
#include "dialects/Graph/Ops/StridedMatmul.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bowline::graph;

LogicalResult DotGeneralOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                             SmallVectorImpl<Type> &results) {
  RankedTensorType lhs = tensorType(adaptor.getLhs()), rhs = tensorType(adaptor.getRhs());
  ArrayRef<int64_t> lhsBatch = adaptor.getLhsBatch(), rhsBatch = adaptor.getRhsBatch();
  ArrayRef<int64_t> lhsContract = adaptor.getLhsContract(), rhsContract = adaptor.getRhsContract();
  if (lhs.getElementType() != rhs.getElementType())
    return emitOptionalError(loc, "element types of both sides must agree, got ", lhs.getElementType(), " and ",
                             rhs.getElementType());

  auto checkPairs = [&](StringRef what, ArrayRef<int64_t> left, ArrayRef<int64_t> right) -> LogicalResult {
    if (left.size() != right.size())
      return emitOptionalError(loc, what, " dimension lists must have equal length, got ", left.size(), " and ",
                               right.size());
    for (auto [l, r] : llvm::zip_equal(left, right))
      if (lhs.getDimSize(l) != rhs.getDimSize(r))
        return emitOptionalError(loc, what, " dimensions ", l, " and ", r, " differ in size: ", lhs.getDimSize(l),
                                 " and ", rhs.getDimSize(r));
    return success();
  };
  SmallVector<int64_t> lhsUsed = llvm::to_vector(llvm::concat<const int64_t>(lhsBatch, lhsContract));
  SmallVector<int64_t> rhsUsed = llvm::to_vector(llvm::concat<const int64_t>(rhsBatch, rhsContract));
  if (failed(checkDims(loc, "lhs", lhsUsed, lhs.getRank(), /*increasing=*/false)) ||
      failed(checkDims(loc, "rhs", rhsUsed, rhs.getRank(), /*increasing=*/false)) ||
      failed(checkPairs("batch", lhsBatch, rhsBatch)) || failed(checkPairs("contract", lhsContract, rhsContract)))
    return failure();

  SmallVector<int64_t> shape;
  for (int64_t dim : lhsBatch)
    shape.push_back(lhs.getDimSize(dim));
  llvm::append_range(shape, withoutDims(lhs.getShape(), lhsUsed));
  llvm::append_range(shape, withoutDims(rhs.getShape(), rhsUsed));
  results.push_back(RankedTensorType::get(shape, lhs.getElementType()));
  return success();
}

/// The element type that was inferred, or f32 for a narrower one.
bool DotGeneralOp::isCompatibleReturnTypes(TypeRange inferred, TypeRange given) {
  if (inferred == given)
    return true;
  if (inferred.size() != 1 || given.size() != 1)
    return false;
  auto narrow = dyn_cast<RankedTensorType>(inferred[0]), wide = dyn_cast<RankedTensorType>(given[0]);
  return narrow && wide && narrow.getShape() == wide.getShape() && narrow.getElementTypeBitWidth() < 32 &&
         wide.getElementType().isF32();
}

SmallVector<int64_t> DotGeneralOp::getLhsFree() {
  return otherDims(tensorType(getLhs()).getRank(),
                   llvm::to_vector(llvm::concat<const int64_t>(getLhsBatch(), getLhsContract())));
}

SmallVector<int64_t> DotGeneralOp::getRhsFree() {
  return otherDims(tensorType(getRhs()).getRank(),
                   llvm::to_vector(llvm::concat<const int64_t>(getRhsBatch(), getRhsContract())));
}

namespace {
/// One side of a contraction, seen from its gradient.
struct Side {
  ArrayRef<int64_t> batch, contract;
  SmallVector<int64_t> free;
  /// The dimensions of the result that are the batch dimensions, and those that are this side's free dimensions.
  SmallVector<int64_t> resultBatch, resultFree;
};
} // namespace

/// Transposes `value`, whose dimension i is dimension `target[i]` of the wanted tensor, into order.
static Value reorder(ImplicitLocOpBuilder &builder, Value value, ArrayRef<int64_t> target) {
  SmallVector<int64_t> perm(target.size());
  for (auto [i, dim] : llvm::enumerate(target))
    perm[dim] = i;
  if (llvm::equal(perm, llvm::seq<int64_t>(0, perm.size())))
    return value;
  return TransposeOp::create(builder, value, perm);
}

/// The gradient of side `wanted`: the result's gradient contracted with the `other` side over its free dimensions.
static Value sideGrad(ImplicitLocOpBuilder &builder, Value grad, Value otherValue, const Side &wanted,
                      const Side &other) {
  // The contracted dimensions of the other side remain, in increasing order.
  SmallVector<int64_t> remaining;
  for (int64_t dim = 0; dim < tensorType(otherValue).getRank(); ++dim)
    if (const auto *it = llvm::find(other.contract, dim); it != other.contract.end())
      remaining.push_back(wanted.contract[it - other.contract.begin()]);

  SmallVector<int64_t> gradFirst = llvm::to_vector(wanted.batch), otherFirst = gradFirst;
  llvm::append_range(gradFirst, wanted.free);
  llvm::append_range(gradFirst, remaining);
  llvm::append_range(otherFirst, remaining);
  llvm::append_range(otherFirst, wanted.free);

  // Either operand order computes the same; take the one whose result needs no transpose.
  if (llvm::equal(otherFirst, llvm::seq<int64_t>(0, otherFirst.size())))
    return DotGeneralOp::create(builder, otherValue, grad, other.batch, wanted.resultBatch, other.free,
                                other.resultFree);
  Value product =
      DotGeneralOp::create(builder, grad, otherValue, wanted.resultBatch, other.batch, other.resultFree, other.free);
  return reorder(builder, product, gradFirst);
}

LogicalResult DotGeneralOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  Side lhs{getLhsBatch(), getLhsContract(), getLhsFree(), {}, {}};
  Side rhs{getRhsBatch(), getRhsContract(), getRhsFree(), {}, {}};
  int64_t batch = lhs.batch.size(), lhsFree = lhs.free.size(), rhsFree = rhs.free.size();
  // Products of the gradient need operands of one type.
  Value grad = resultGrads[0];
  Type elementType = tensorType(getLhs()).getElementType();
  if (tensorType(grad).getElementType() != elementType)
    grad = arith::TruncFOp::create(b, tensorType(grad).clone(elementType), grad);
  lhs.resultBatch = rhs.resultBatch = llvm::to_vector(llvm::seq<int64_t>(0, batch));
  lhs.resultFree = llvm::to_vector(llvm::seq<int64_t>(batch, batch + lhsFree));
  rhs.resultFree = llvm::to_vector(llvm::seq<int64_t>(batch + lhsFree, batch + lhsFree + rhsFree));
  operandGrads[0] = sideGrad(b, grad, getRhs(), lhs, rhs);
  operandGrads[1] = sideGrad(b, grad, getLhs(), rhs, lhs);
  return success();
}

LogicalResult DotGeneralOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                      const Arithmetic &arithmetic) {
  const HostTensor &lhs = operands[0], &rhs = operands[1];
  SmallVector<int64_t> lhsInner = lhs.offsetsAlong(getLhsContract()), lhsOuter = lhs.offsetsAlong(getLhsFree());
  SmallVector<int64_t> rhsInner = rhs.offsetsAlong(getRhsContract()), rhsOuter = rhs.offsetsAlong(getRhsFree());
  auto next = results[0].data.begin();
  for (auto [l, r] : llvm::zip_equal(lhs.offsetsAlong(getLhsBatch()), rhs.offsetsAlong(getRhsBatch())))
    for (int64_t row : lhsOuter)
      for (int64_t column : rhsOuter)
        *next++ = arithmetic.sumOfProducts(&lhs.data[l + row], lhsInner, &rhs.data[r + column], rhsInner);
  return success();
}

FactorRule DotGeneralOp::factorRule() {
  FactorRule rule;
  RankedTensorType lhsType = tensorType(getLhs()), rhsType = tensorType(getRhs());
  FactorRule::TensorFactors lhs(lhsType.getRank()), rhs(rhsType.getRank()), result;
  for (auto [l, r] : llvm::zip_equal(getLhsBatch(), getRhsBatch()))
    result.push_back(lhs[l] = rhs[r] = {rule.add(lhsType.getDimSize(l))});
  for (int64_t dim : getLhsFree())
    result.push_back(lhs[dim] = {rule.add(lhsType.getDimSize(dim))});
  for (int64_t dim : getRhsFree())
    result.push_back(rhs[dim] = {rule.add(rhsType.getDimSize(dim))});
  for (auto [l, r] : llvm::zip_equal(getLhsContract(), getRhsContract()))
    lhs[l] = rhs[r] = {rule.add(lhsType.getDimSize(l), FactorRule::Kind::Reduction, ReduceKind::Sum)};
  rule.operands = {lhs, rhs};
  rule.results = {result};
  return rule;
}

double DotGeneralOp::flops() {
  double contracted = 1;
  for (int64_t dim : getLhsContract())
    contracted *= tensorType(getLhs()).getDimSize(dim);
  return 2 * contracted * tensorType(getResult()).getNumElements();
}

//===----------------------------------------------------------------------===//
// Local forms
//===----------------------------------------------------------------------===//

bool DotGeneralOp::canSplitDims(bool byRule, ArrayRef<DimSplits>, ArrayRef<DimSplits>) { return byRule; }

void DotGeneralOp::splitDims(ArrayRef<DimSplits> operands, ArrayRef<DimSplits> results) {
  setLhsBatch(graph::splitDims(operands[0], getLhsBatch()));
  setRhsBatch(graph::splitDims(operands[1], getRhsBatch()));
  setLhsContract(graph::splitDims(operands[0], getLhsContract()));
  setRhsContract(graph::splitDims(operands[1], getRhsContract()));
  setSplitTypes(*this, results);
}

bool DotGeneralOp::hasNeutralPadding() { return true; }

void DotGeneralOp::requireNeutralPadding(PaddingContext &context) {
  if (context.kind() != FactorRule::Kind::Reduction || context.numberIn(0) == 0.0 || context.numberIn(1) == 0.0)
    return;
  bool isLeftSmaller = tensorType(getLhs()).getNumElements() < tensorType(getRhs()).getNumElements();
  context.require(isLeftSmaller ? 0 : 1, 0.0);
}

std::optional<double> DotGeneralOp::resultPadding(const PaddingContext &context, unsigned) {
  return context.numberIn(0) == 0.0 || context.numberIn(1) == 0.0 ? std::optional(0.0) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

Precision DotGeneralOp::precision() { return Precision::Narrow; }

bool DotGeneralOp::accumulatesWide() { return true; }

StringRef DotGeneralOp::kernelName() { return "matmul"; }

bool DotGeneralOp::hasKernel() { return StridedMatmul::of(*this).has_value(); }

DictionaryAttr DotGeneralOp::kernelConfig(bool hasEpilogue) {
  StridedMatmul matmul = *StridedMatmul::of(*this);
  KernelConfig config(getContext());
  config.integer("batch", matmul.batch).integer("m", matmul.m).integer("n", matmul.n).integer("k", matmul.k);
  config.integers("a_strides", matmul.aStrides).integers("b_strides", matmul.bStrides);
  if (!hasEpilogue)
    config.integers("c_strides", matmul.cStrides);
  return config.get();
}

std::optional<int64_t> DotGeneralOp::epilogueRowDims() {
  if (!hasKernel() || !getLhsBatch().empty() || getLhsFree().empty() || getRhsFree().empty())
    return std::nullopt;
  return static_cast<int64_t>(getLhsFree().size());
}

/// A transpose in a fusion of its own, as every generated operation is when kernels are selected.
static Value storedTranspose(ImplicitLocOpBuilder &builder, Value value, ArrayRef<int64_t> perm) {
  if (llvm::is_sorted(perm))
    return value;
  RankedTensorType type = tensorType(value);
  SmallVector<int64_t> shape = llvm::map_to_vector(perm, [&](int64_t dim) { return type.getDimSize(dim); });
  auto fusion = FusionOp::create(builder, TypeRange{type.clone(shape)}, value);
  OpBuilder::InsertionGuard guard(builder);
  Block &body = fusion.getBody().emplaceBlock();
  Value argument = body.addArgument(type, builder.getLoc());
  builder.setInsertionPointToStart(&body);
  Value transposed = TransposeOp::create(builder, argument, perm);
  YieldOp::create(builder, transposed);
  return fusion.getResult(0);
}

/// Operands that strides cannot express get their dimensions in the order batch, free, contracted.
void DotGeneralOp::prepareForKernel(OpBuilder &builder) {
  if (hasKernel())
    return;
  ImplicitLocOpBuilder b(getLoc(), builder);
  auto rearrange = [&](Value side, ArrayRef<int64_t> batch, ArrayRef<int64_t> free, ArrayRef<int64_t> contract) {
    SmallVector<int64_t> perm = llvm::to_vector(llvm::concat<const int64_t>(batch, free, contract));
    return storedTranspose(b, side, perm);
  };
  Value lhs = rearrange(getLhs(), getLhsBatch(), getLhsFree(), getLhsContract());
  Value rhs = rearrange(getRhs(), getRhsBatch(), getRhsFree(), getRhsContract());
  int64_t batch = getLhsBatch().size(), contract = getLhsContract().size();
  auto range = [](int64_t begin, int64_t end) { return llvm::to_vector(llvm::seq(begin, end)); };
  int64_t lhsRank = getLhs().getType().getRank(), rhsRank = getRhs().getType().getRank();
  auto strided = DotGeneralOp::create(b, lhs, rhs, range(0, batch), range(0, batch), range(lhsRank - contract, lhsRank),
                                      range(rhsRank - contract, rhsRank));
  strided.getResult().setType(getType());
  replaceAllUsesWith(strided.getResult());
  erase();
}

/// The order of strides that decrease, for the dimensions that have a step; the others come first. None where memory
/// with these strides is not dense.
static std::optional<SmallVector<int64_t>> denseOrder(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  if (strides.size() != sizes.size())
    return std::nullopt;
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, sizes.size()));
  auto step = [&](int64_t dim) { return sizes[dim] == 1 ? std::numeric_limits<int64_t>::max() : strides[dim]; };
  llvm::stable_sort(order, [&](int64_t a, int64_t b) { return step(a) > step(b); });
  int64_t covered = 1;
  for (int64_t dim : llvm::reverse(order)) {
    if (sizes[dim] != 1 && strides[dim] != covered)
      return std::nullopt;
    covered *= sizes[dim];
  }
  return order;
}

static Value reshaped(ImplicitLocOpBuilder &builder, Value value, ArrayRef<int64_t> shape) {
  return ReshapeOp::create(builder, tensorType(value).clone(shape), value);
}

/// The matrices [batch, rows, columns] that are in dense memory with these strides; null where memory holds more.
static Value matricesOf(ImplicitLocOpBuilder &builder, Value memory, ArrayRef<int64_t> sizes,
                        ArrayRef<int64_t> strides) {
  std::optional<SmallVector<int64_t>> order = denseOrder(sizes, strides);
  if (!order || llvm::product_of(sizes) != tensorType(memory).getNumElements())
    return {};
  SmallVector<int64_t> stored, perm(sizes.size());
  for (auto [place, dim] : llvm::enumerate(*order)) {
    stored.push_back(sizes[dim]);
    perm[dim] = static_cast<int64_t>(place);
  }
  return TransposeOp::create(builder, reshaped(builder, memory, stored), perm);
}

LogicalResult DotGeneralOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use, ValueRange operands,
                                            SmallVectorImpl<Value> &results) {
  int64_t batch = use.integer("batch"), m = use.integer("m"), n = use.integer("n"), k = use.integer("k");
  if (use.integer("accumulate") || batch < 1 || m < 1 || n < 1 || k < 1)
    return failure();
  Value lhs = matricesOf(builder, operands[0], {batch, m, k}, use.integers("a_strides")), rhs = operands[1];
  if (use.integer("b_packed")) { // row-major, with zeros behind it
    int64_t whole = tensorType(rhs).getNumElements();
    if (whole < batch * k * n)
      return failure();
    Value flat = reshaped(builder, rhs, {whole});
    rhs = reshaped(builder, SliceOp::create(builder, flat, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{batch * k * n}),
                   {batch, k, n});
  } else {
    rhs = matricesOf(builder, rhs, {batch, k, n}, use.integers("b_strides"));
  }
  if (!lhs || !rhs)
    return failure();
  using Dims = ArrayRef<int64_t>;
  auto dot = DotGeneralOp::create(builder, lhs, rhs, Dims{0}, Dims{0}, Dims{2}, Dims{1});
  // An epilogue gets the sum as it is; else it is rounded to the type of the result.
  Type sum = use.hasEpilogue ? Type(builder.getF32Type()) : use.results[0].getElementType();
  dot.getResult().setType(tensorType(dot).clone(sum));
  if (use.hasEpilogue) {
    results.push_back(reshaped(builder, dot, {m, n}));
    return success();
  }
  int64_t sizes[] = {batch, m, n};
  std::optional<SmallVector<int64_t>> order = denseOrder(sizes, use.integers("c_strides"));
  if (!order || llvm::product_of(ArrayRef(sizes)) != use.results[0].getNumElements())
    return failure();
  results.push_back(reshaped(builder, TransposeOp::create(builder, dot, *order), use.results[0].getShape()));
  return success();
}
