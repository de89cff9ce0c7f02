//===- Grouped.cpp - grouped_dot, grouped_outer
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/LocalParts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bowline::graph;

/// Offsets [G + 1] for at most `groups` groups, on operands of one element type.
static LogicalResult checkGroups(std::optional<Location> loc, RankedTensorType lhs, RankedTensorType rhs,
                                 RankedTensorType offsets, int64_t groups) {
  if (lhs.getElementType() != rhs.getElementType())
    return emitOptionalError(loc, "element types of both sides must agree, got ", lhs.getElementType(), " and ",
                             rhs.getElementType());
  if (offsets.getRank() != 1 || offsets.getDimSize(0) < 2 || offsets.getDimSize(0) > groups + 1)
    return emitOptionalError(loc, "the offsets must have one dimension of 2 to ", groups + 1,
                             " elements, one more than groups, got ", offsets);
  return success();
}

/// The wanted type, or f32 in the place of a narrower one.
static bool isSameOrWide(TypeRange inferred, TypeRange given) {
  if (inferred == given)
    return true;
  auto narrow = cast<RankedTensorType>(inferred[0]), wide = dyn_cast<RankedTensorType>(given[0]);
  return wide && narrow.getShape() == wide.getShape() && narrow.getElementTypeBitWidth() < 32 &&
         wide.getElementType().isF32();
}

/// Calls `body` with the number of each group, its first row, and the one behind its last.
static LogicalResult forEachGroup(Operation *op, const HostTensor &offsets, int64_t rows,
                                  function_ref<void(int64_t, int64_t, int64_t)> body) {
  for (size_t group = 0; group + 1 < offsets.data.size(); ++group) {
    double begin = offsets.data[group], end = offsets.data[group + 1];
    if (begin < 0 || begin > end || end > static_cast<double>(rows))
      return op->emitOpError("offsets ") << static_cast<int64_t>(begin) << " and " << static_cast<int64_t>(end)
                                         << " of group " << group << " do not ascend within the " << rows << " rows";
    body(static_cast<int64_t>(group), static_cast<int64_t>(begin), static_cast<int64_t>(end));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Local forms
//===----------------------------------------------------------------------===//

/// The offsets within this rank's shard of `rows` rows: counted from its first row, and limited to [0, rows]. One that
/// is none of all rows stays as it is, and so is none of the shard's either: the check before the kernel finds it.
/// Where one is below the one before it, so it is on the rank that has the rows between both.
static Value offsetsOfRows(LocalContext &context, ImplicitLocOpBuilder &builder, Value offsets, LocalContext::Axes axes,
                           int64_t rows) {
  Value own = withinZeroAnd(builder, shiftedToPart(context, builder, offsets, axes, rows), rows);
  return whereOwn(builder, offsets, rows * context.countAlong(axes) + 1, own, offsets);
}

/// The offsets of the `groups` groups of this rank's shard. Groups beyond the last one are empty: they end with the
/// last offset.
static Value offsetsOfGroups(LocalContext &context, ImplicitLocOpBuilder &builder, Value offsets,
                             LocalContext::Axes axes, int64_t groups) {
  auto type = RankedTensorType::get({groups + 1}, builder.getI32Type());
  Value place = context.placeAlong(builder, axes);
  Value first =
      arith::MulIOp::create(builder, place, constantLike(builder, place.getType(), static_cast<double>(groups)));
  Value index = arith::AddIOp::create(builder, BroadcastOp::create(builder, type, first, ArrayRef<int64_t>{}),
                                      IotaOp::create(builder, type, 0));
  return GatherOp::create(builder, offsets, atMost(builder, index, tensorType(offsets).getDimSize(0) - 1),
                          /*in_range=*/true);
}

/// Returns the offsets of the rank's shards, where the first operand of `op` may be sharded along its rows and
/// `matrices` along the groups.
static Value localOffsets(LocalContext &context, Operation *op, Value offsets, Value matrices) {
  ImplicitLocOpBuilder builder(op->getLoc(), op);
  Value rows = op->getOperand(0);
  if (LocalContext::Axes axes = context.axesOf(matrices, 0); !axes.empty())
    offsets = offsetsOfGroups(context, builder, offsets, axes, tensorType(matrices).getDimSize(0));
  if (LocalContext::Axes axes = context.axesOf(rows, 0); !axes.empty())
    offsets = offsetsOfRows(context, builder, offsets, axes, tensorType(rows).getDimSize(0));
  return offsets;
}

//===----------------------------------------------------------------------===//
// GroupedDotOp
//===----------------------------------------------------------------------===//

LogicalResult GroupedDotOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                             SmallVectorImpl<Type> &results) {
  RankedTensorType rows = tensorType(adaptor.getRows()), matrices = tensorType(adaptor.getMatrices());
  if (rows.getRank() != 2 || matrices.getRank() != 3)
    return emitOptionalError(loc, "the rows must have two dimensions and the matrices three, got ", rows, " and ",
                             matrices);
  int64_t contracted = adaptor.getTransposed() ? 2 : 1;
  if (matrices.getDimSize(contracted) != rows.getDimSize(1))
    return emitOptionalError(loc, "dimension ", contracted, " of the matrices has size ",
                             matrices.getDimSize(contracted), ", but rows have ", rows.getDimSize(1), " elements");
  if (failed(checkGroups(loc, rows, matrices, tensorType(adaptor.getOffsets()), matrices.getDimSize(0))))
    return failure();
  int64_t shape[] = {rows.getDimSize(0), matrices.getDimSize(3 - contracted)};
  results.push_back(rows.clone(shape));
  return success();
}

bool GroupedDotOp::isCompatibleReturnTypes(TypeRange inferred, TypeRange given) {
  return isSameOrWide(inferred, given);
}

LogicalResult GroupedDotOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  Value grad = resultGrads[0];
  Type element = tensorType(getRows()).getElementType();
  if (tensorType(grad).getElementType() != element)
    grad = arith::TruncFOp::create(b, tensorType(grad).clone(element), grad);
  operandGrads[0] = GroupedDotOp::create(b, grad, getMatrices(), getOffsets(), !getTransposed());
  Value lhs = getTransposed() ? grad : getRows(), rhs = getTransposed() ? getRows() : grad;
  operandGrads[1] = GroupedOuterOp::create(b, getMatrices().getType(), lhs, rhs, getOffsets());
  return success();
}

LogicalResult GroupedDotOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                      const Arithmetic &arithmetic) {
  const HostTensor &rows = operands[0], &matrices = operands[1], &offsets = operands[2];
  HostTensor &result = results[0];
  llvm::fill(result.data, 0.0);
  std::vector<int64_t> steps = matrices.strides();
  int64_t k = getTransposed() ? 2 : 1, columns = result.shape[1];
  SmallVector<int64_t> inRow = rows.offsetsAlong(1), inMatrix = matrices.offsetsAlong(k);
  return forEachGroup(*this, offsets, rows.shape[0], [&](int64_t group, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t column = 0; column < columns; ++column)
        result.data[row * columns + column] = arithmetic.sumOfProducts(
            &rows.data[row * rows.shape[1]], inRow, &matrices.data[group * steps[0] + column * steps[3 - k]], inMatrix);
  });
}

/// Rows and columns are independent. Sharding the matrices shards the groups: a shard gives zeros for the rows of
/// others.
FactorRule GroupedDotOp::factorRule() {
  using Kind = FactorRule::Kind;
  FactorRule rule;
  RankedTensorType matrices = tensorType(getMatrices());
  bool transposed = getTransposed();
  int64_t row = rule.add(tensorType(getRows()).getDimSize(0)), column = rule.add(tensorType(getResult()).getDimSize(1));
  int64_t k = rule.add(tensorType(getRows()).getDimSize(1), Kind::Reduction, ReduceKind::Sum);
  int64_t group = rule.add(matrices.getDimSize(0), Kind::Reduction, ReduceKind::Sum);
  int64_t offset = rule.add(tensorType(getOffsets()).getDimSize(0), Kind::Blocked);
  rule.operands = {{{row}, {k}}, {{group}, {transposed ? column : k}, {transposed ? k : column}}, {{offset}}};
  rule.results = {{{row}, {column}}};
  return rule;
}

double GroupedDotOp::flops() {
  return 2.0 * tensorType(getRows()).getDimSize(1) * tensorType(getResult()).getNumElements();
}

void GroupedDotOp::localize(LocalContext &context) {
  getOffsetsMutable().assign(localOffsets(context, *this, getOffsets(), getMatrices()));
}

bool GroupedDotOp::hasNeutralPadding() { return true; }

/// Padded rows and matrices are behind those that the offsets name; contracted padding needs a zero on one side.
void GroupedDotOp::requireNeutralPadding(PaddingContext &context) {
  bool isContracted = context.dimOfOperand(0) == 1;
  if (isContracted && context.numberIn(0) != 0.0 && context.numberIn(1) != 0.0)
    context.require(0, 0.0);
}

std::optional<double> GroupedDotOp::resultPadding(const PaddingContext &context, unsigned) {
  bool isZero = context.dimOfResult(0) == 0 || context.numberIn(1) == 0.0;
  return isZero ? std::optional(0.0) : std::nullopt;
}

Precision GroupedDotOp::precision() { return Precision::Narrow; }
bool GroupedDotOp::accumulatesWide() { return true; }

StringRef GroupedDotOp::kernelName() { return "grouped_matmul"; }

DictionaryAttr GroupedDotOp::kernelConfig(bool) {
  return KernelConfig(getContext()).integer("transposed", getTransposed()).get();
}

LogicalResult GroupedDotOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use, ValueRange operands,
                                            SmallVectorImpl<Value> &results) {
  auto op = GroupedDotOp::create(builder, operands[0], operands[1], operands[2], use.integer("transposed") != 0);
  op.getResult().setType(use.results[0]);
  results.push_back(op);
  return success();
}

//===----------------------------------------------------------------------===//
// GroupedOuterOp
//===----------------------------------------------------------------------===//

LogicalResult GroupedOuterOp::verify() {
  RankedTensorType lhs = tensorType(getLhs()), rhs = tensorType(getRhs()), result = tensorType(getResult());
  if (lhs.getRank() != 2 || rhs.getRank() != 2 || lhs.getDimSize(0) != rhs.getDimSize(0))
    return emitOpError("both sides must have two dimensions and the same number of rows, got ")
           << lhs << " and " << rhs;
  if (result.getRank() != 3 || result.getDimSize(1) != lhs.getDimSize(1) || result.getDimSize(2) != rhs.getDimSize(1))
    return emitOpError("the result must be a matrix of ")
           << lhs.getDimSize(1) << " x " << rhs.getDimSize(1) << " for each group, got " << result;
  if (failed(checkGroups(getLoc(), lhs, rhs, tensorType(getOffsets()), result.getDimSize(0))))
    return failure();
  if (!isSameOrWide(TypeRange{result.clone(lhs.getElementType())}, TypeRange{result}))
    return emitOpError("the result must have the elements of both sides, or f32 where these are narrower");
  return success();
}

LogicalResult GroupedOuterOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                       SmallVectorImpl<Value> &operandGrads) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  Value grad = resultGrads[0];
  Type element = tensorType(getLhs()).getElementType();
  if (tensorType(grad).getElementType() != element)
    grad = arith::TruncFOp::create(b, tensorType(grad).clone(element), grad);
  operandGrads[0] = GroupedDotOp::create(b, getRhs(), grad, getOffsets(), /*transposed=*/true);
  operandGrads[1] = GroupedDotOp::create(b, getLhs(), grad, getOffsets(), /*transposed=*/false);
  return success();
}

LogicalResult GroupedOuterOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                        const Arithmetic &a) {
  const HostTensor &lhs = operands[0], &rhs = operands[1], &offsets = operands[2];
  HostTensor &result = results[0];
  llvm::fill(result.data, 0.0);
  int64_t m = lhs.shape[1], n = rhs.shape[1];
  return forEachGroup(*this, offsets, lhs.shape[0], [&](int64_t group, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double &sum = result.data[(group * m + i) * n + j];
          sum = a.add(sum, a.multiply(lhs.data[row * m + i], rhs.data[row * n + j]));
        }
  });
}

/// Rows are summed; a shard of the groups is a shard of the result.
FactorRule GroupedOuterOp::factorRule() {
  using Kind = FactorRule::Kind;
  FactorRule rule;
  int64_t row = rule.add(tensorType(getLhs()).getDimSize(0), Kind::Reduction, ReduceKind::Sum);
  FactorRule::TensorFactors result = rule.addDims(tensorType(getResult()).getShape());
  int64_t offset = rule.add(tensorType(getOffsets()).getDimSize(0), Kind::Blocked);
  rule.operands = {{{row}, result[1]}, {{row}, result[2]}, {{offset}}};
  rule.results = {result};
  return rule;
}

double GroupedOuterOp::flops() {
  return 2.0 * tensorType(getLhs()).getNumElements() * tensorType(getRhs()).getDimSize(1);
}

void GroupedOuterOp::localize(LocalContext &context) {
  getOffsetsMutable().assign(localOffsets(context, *this, getOffsets(), getResult()));
}

bool GroupedOuterOp::hasNeutralPadding() { return true; } // padded rows are behind those that the offsets name

std::optional<double> GroupedOuterOp::resultPadding(const PaddingContext &context, unsigned) {
  bool isZero = context.dimOfResult(0) == 0 || context.numberIn(0) == 0.0 || context.numberIn(1) == 0.0;
  return isZero ? std::optional(0.0) : std::nullopt;
}

Precision GroupedOuterOp::precision() { return Precision::Narrow; }
bool GroupedOuterOp::accumulatesWide() { return true; }

StringRef GroupedOuterOp::kernelName() { return "grouped_outer"; }
DictionaryAttr GroupedOuterOp::kernelConfig(bool) { return KernelConfig(getContext()).get(); }

LogicalResult GroupedOuterOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use, ValueRange operands,
                                              SmallVectorImpl<Value> &results) {
  results.push_back(GroupedOuterOp::create(builder, use.results[0], operands[0], operands[1], operands[2]));
  return success();
}
