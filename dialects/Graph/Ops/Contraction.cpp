//===- Contraction.cpp - dot_general
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"
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
  /// Where the batch and this side's free dimensions are in the result.
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
  // What remains of the other side are its contracted dimensions, in increasing order.
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

LogicalResult DotGeneralOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  const HostTensor &lhs = operands[0], &rhs = operands[1];
  std::vector<int64_t> lhsStrides = lhs.strides(), rhsStrides = rhs.strides();
  SmallVector<int64_t> lhsFree = getLhsFree(), rhsFree = getRhsFree();
  std::vector<int64_t> contracted;
  for (int64_t dim : getLhsContract())
    contracted.push_back(lhs.shape[dim]);

  int64_t next = 0;
  forEachIndex(results[0].shape, [&](const std::vector<int64_t> &index) {
    int64_t lhsBase = 0, rhsBase = 0;
    size_t position = 0;
    for (auto [l, r] : llvm::zip_equal(getLhsBatch(), getRhsBatch())) {
      lhsBase += index[position] * lhsStrides[l];
      rhsBase += index[position++] * rhsStrides[r];
    }
    for (int64_t dim : lhsFree)
      lhsBase += index[position++] * lhsStrides[dim];
    for (int64_t dim : rhsFree)
      rhsBase += index[position++] * rhsStrides[dim];
    double sum = 0;
    forEachIndex(contracted, [&](const std::vector<int64_t> &inner) {
      int64_t l = lhsBase, r = rhsBase;
      for (size_t i = 0; i < inner.size(); ++i) {
        l += inner[i] * lhsStrides[getLhsContract()[i]];
        r += inner[i] * rhsStrides[getRhsContract()[i]];
      }
      sum += lhs.data[l] * rhs.data[r];
    });
    results[0].data[next++] = sum;
  });
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
