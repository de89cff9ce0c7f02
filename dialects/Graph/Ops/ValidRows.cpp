//===- ValidRows.cpp - valid_rows
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/ValidRows.h"
#include "dialects/Graph/Ops/LocalParts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bowline::graph;

LogicalResult ValidRowsOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                            SmallVectorImpl<Type> &results) {
  RankedTensorType rows = tensorType(adaptor.getRows()), count = tensorType(adaptor.getCount());
  if (rows.getRank() == 0 || count.getRank() != 1)
    return emitOptionalError(loc, "the rows must have at least one dimension and the count one, got ", rows, " and ",
                             count);
  results.push_back(rows);
  return success();
}

LogicalResult ValidRowsOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  operandGrads[0] = ValidRowsOp::create(builder, getLoc(), resultGrads[0], getCount());
  return success();
}

LogicalResult ValidRowsOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                     const Arithmetic &) {
  const HostTensor &rows = operands[0];
  auto elements = static_cast<ptrdiff_t>(rows.count() / rows.shape[0] * validRows(operands[1], rows.shape[0]));
  llvm::fill(results[0].data, 0.0);
  std::copy(rows.data.begin(), rows.data.begin() + elements, results[0].data.begin());
  return success();
}

/// All rows have the same count; where they are divided, each part has another one.
FactorRule ValidRowsOp::factorRule() {
  FactorRule rule;
  FactorRule::TensorFactors rows = rule.addDims(getType().getShape());
  FactorRule::TensorFactors count = rule.addDims(tensorType(getCount()).getShape(), FactorRule::Kind::Blocked);
  rule.operands = {rows, count};
  rule.results = {rows};
  return rule;
}

double ValidRowsOp::flops() { return 0; }

void ValidRowsOp::localize(LocalContext &context) {
  LocalContext::Axes axes = context.axesOf(getRows(), 0);
  if (axes.empty())
    return;
  // A count beyond the part is all of it, and one in front of it is none. The difference needs numbers of rows: a count
  // far below 0 would become one of all rows.
  ImplicitLocOpBuilder builder(getLoc(), *this);
  int64_t part = getType().getDimSize(0);
  Value count = withinZeroAnd(builder, getCount(), part * context.countAlong(axes));
  getCountMutable().assign(shiftedToPart(context, builder, count, axes, part));
}

std::optional<double> ValidRowsOp::resultPadding(const PaddingContext &context, unsigned) {
  // Padded rows are behind the count, unless that is larger than the number of rows.
  return context.numberIn(0) == 0.0 ? std::optional(0.0) : std::nullopt;
}

Precision ValidRowsOp::precision() { return Precision::Follow; }

FusionRole ValidRowsOp::fusionRole() { return FusionRole::Row; }

SmallVector<Value> ValidRowsOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RankedTensorType type = getType();
  int64_t last = tensorType(getCount()).getDimSize(0) - 1;
  auto index = RankedTensorType::get(type.getShape(), b.getI32Type());
  Value count = SliceOp::create(b, getCount(), ArrayRef<int64_t>{last}, ArrayRef<int64_t>{1});
  count = ReshapeOp::create(b, RankedTensorType::get({}, b.getI32Type()), count);
  Value counts = BroadcastOp::create(b, index, count, ArrayRef<int64_t>{});
  Value isValid = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, IotaOp::create(b, index, 0), counts);
  return {arith::SelectOp::create(b, isValid, getRows(), constantLike(b, type, 0))};
}

Value bowline::graph::countOfZeroedRows(Operation *op) {
  auto rows = dyn_cast<ValidRowsOp>(op);
  return rows ? rows.getCount() : Value();
}
