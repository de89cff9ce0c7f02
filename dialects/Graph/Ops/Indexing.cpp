//===- Indexing.cpp - gather, scatter_add
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"

using namespace mlir;
using namespace bowline::graph;

/// The shape of rows gathered from `table`: the indices' dimensions, then the table's after the first.
static SmallVector<int64_t> rowsShape(RankedTensorType table, RankedTensorType indices) {
  SmallVector<int64_t> shape = llvm::to_vector(indices.getShape());
  llvm::append_range(shape, table.getShape().drop_front());
  return shape;
}

static FactorRule::TensorFactors joined(FactorRule::TensorFactors first, const FactorRule::TensorFactors &second) {
  llvm::append_range(first, second);
  return first;
}

static LogicalResult checkIndex(Operation *op, double index, int64_t rows) {
  if (index >= 0 && index < rows)
    return success();
  return op->emitOpError("index ") << static_cast<int64_t>(index) << " is outside of the table's " << rows << " rows";
}

//===----------------------------------------------------------------------===//
// GatherOp
//===----------------------------------------------------------------------===//

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                         SmallVectorImpl<Type> &results) {
  RankedTensorType table = tensorType(adaptor.getTable());
  if (table.getRank() == 0)
    return emitOptionalError(loc, "the table needs at least one dimension");
  results.push_back(RankedTensorType::get(rowsShape(table, tensorType(adaptor.getIndices())), table.getElementType()));
  return success();
}

LogicalResult GatherOp::buildVjp(OpBuilder &builder, ValueRange resultGrads, SmallVectorImpl<Value> &operandGrads) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  operandGrads[0] = ScatterAddOp::create(b, getTable().getType(), resultGrads[0], getIndices());
  return success();
}

LogicalResult GatherOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  const HostTensor &table = operands[0], &indices = operands[1];
  int64_t rows = table.shape[0], rowSize = rows == 0 ? 0 : table.count() / rows;
  for (auto [i, index] : llvm::enumerate(indices.data)) {
    if (failed(checkIndex(*this, index, rows)))
      return failure();
    auto row = table.data.begin() + static_cast<int64_t>(index) * rowSize;
    std::copy(row, row + rowSize, results[0].data.begin() + i * rowSize);
  }
  return success();
}

FactorRule GatherOp::factorRule() {
  FactorRule rule;
  RankedTensorType tableType = tensorType(getTable());
  FactorRule::TensorFactors indices = rule.addDims(tensorType(getIndices()).getShape());
  FactorRule::TensorFactors row = rule.addDims(tableType.getShape().drop_front());
  // A part of the table gives zeros for the rows that it does not have.
  int64_t rows = rule.add(tableType.getDimSize(0), FactorRule::Kind::Reduction, ReduceKind::Sum);
  rule.operands = {joined({{rows}}, row), indices};
  rule.results = {joined(indices, row)};
  return rule;
}

double GatherOp::flops() { return 0; }

//===----------------------------------------------------------------------===//
// ScatterAddOp
//===----------------------------------------------------------------------===//

LogicalResult ScatterAddOp::verify() {
  RankedTensorType updates = tensorType(getUpdates()), result = tensorType(getResult());
  if (result.getRank() == 0)
    return emitOpError("the result needs at least one dimension");
  if (updates.getElementType() != result.getElementType())
    return emitOpError("element types must agree");
  if (updates.getShape() != ArrayRef<int64_t>(rowsShape(result, tensorType(getIndices()))))
    return emitOpError("updates must have the indices' dimensions, then the result's dimensions after the first");
  return success();
}

LogicalResult ScatterAddOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  const HostTensor &updates = operands[0], &indices = operands[1];
  HostTensor &result = results[0];
  std::fill(result.data.begin(), result.data.end(), 0.0);
  int64_t rows = result.shape[0], rowSize = rows == 0 ? 0 : result.count() / rows;
  for (auto [i, index] : llvm::enumerate(indices.data)) {
    if (failed(checkIndex(*this, index, rows)))
      return failure();
    for (int64_t d = 0; d < rowSize; ++d)
      result.data[static_cast<int64_t>(index) * rowSize + d] += updates.data[i * rowSize + d];
  }
  return success();
}

FactorRule ScatterAddOp::factorRule() {
  FactorRule rule;
  RankedTensorType resultType = tensorType(getResult());
  FactorRule::TensorFactors indices;
  for (int64_t size : tensorType(getIndices()).getShape())
    indices.push_back({rule.add(size, FactorRule::Kind::Reduction, ReduceKind::Sum)});
  FactorRule::TensorFactors row = rule.addDims(resultType.getShape().drop_front());
  // A part of the result drops the updates of rows that it does not have.
  int64_t rows = rule.add(resultType.getDimSize(0));
  rule.operands = {joined(indices, row), indices};
  rule.results = {joined({{rows}}, row)};
  return rule;
}

double ScatterAddOp::flops() { return tensorType(getUpdates()).getNumElements(); }
