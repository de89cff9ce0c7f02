//===- Indexing.cpp - gather, scatter_add
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

/// Indices [N...] repeated along the last dimensions of `rows` [N..., D...].
static Value alongRows(ImplicitLocOpBuilder &builder, Value indices, RankedTensorType rows) {
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, tensorType(indices).getRank()));
  return BroadcastOp::create(builder, RankedTensorType::get(rows.getShape(), builder.getI32Type()), indices, dims);
}

/// The key of a kernel's configuration that says that indices need no check.
static constexpr StringLiteral kInRange = "in_range";

static DictionaryAttr configOf(MLIRContext *context, bool isInRange) {
  KernelConfig config(context);
  return isInRange ? config.integer(kInRange, 1).get() : config.get();
}

static bool isInRange(const KernelUse &use) { return use.config && use.config.contains(kInRange); }

/// Gives an operation the row numbers of the shard along `axes` of its table, which has `part` rows. The first row
/// stands for those that the rank does not have. Returns the numbers counted from the shard's first row, without
/// anything in their place.
///
/// A number that is no row of the whole table stays as it is. So it is no row of the shard either, and the check before
/// the kernel finds it, unless there is none.
static Value localizeIndices(OpOperand &indices, bool inRange, LocalContext &context, ImplicitLocOpBuilder &builder,
                             LocalContext::Axes axes, int64_t part) {
  Value global = indices.get();
  int64_t rows = part * context.countAlong(axes);
  Value index = shiftedToPart(context, builder, global, axes, part);
  Value local = whereOwn(builder, index, part, index, constantLike(builder, index.getType(), 0));
  if (!inRange)
    local = whereOwn(builder, global, rows, local, global);
  indices.set(local);
  return index;
}

void bowline::graph::localizeRowsOf(Operation *op, OpOperand &indices, bool inRange, LocalContext &context,
                                    LocalContext::Axes axes, int64_t part) {
  ImplicitLocOpBuilder builder(op->getLoc(), op);
  Value index = localizeIndices(indices, inRange, context, builder, axes, part);
  builder.setInsertionPointAfter(op);
  Value result = op->getResult(0);
  RankedTensorType type = tensorType(result);
  Value own = whereOwn(builder, alongRows(builder, index, type), part, result, constantLike(builder, type, 0));
  llvm::SmallPtrSet<Operation *, 2> keep;
  for (Operation *user : result.getUsers())
    if (isa<arith::SelectOp>(user) && user->getBlock() == op->getBlock() && user->getResult(0).hasOneUse() &&
        *user->getResult(0).getUsers().begin() == own.getDefiningOp())
      keep.insert(user);
  context.replace(result, own, keep);
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
  operandGrads[0] = ScatterAddOp::create(b, getTable().getType(), resultGrads[0], getIndices(), getInRange());
  return success();
}

LogicalResult GatherOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                  const Arithmetic &) {
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
  // A shard of the table gives zeros for the rows that it does not have.
  int64_t rows = rule.add(tableType.getDimSize(0), FactorRule::Kind::Reduction, ReduceKind::Sum);
  rule.operands = {joined({{rows}}, row), indices};
  rule.results = {joined(indices, row)};
  return rule;
}

double GatherOp::flops() { return 0; }

/// The operation reads only the rows of the table that it gives.
double GatherOp::bytesRead(unsigned operand) { return byteCount(operand == 0 ? getType() : getIndices().getType()); }

Precision GatherOp::precision() { return Precision::Follow; }

// Rows that this rank does not have are zero: the results of all ranks add up.
void GatherOp::localize(LocalContext &context) {
  if (LocalContext::Axes axes = context.axesOf(getTable(), 0); !axes.empty())
    localizeRowsOf(*this, getIndicesMutable(), getInRange(), context, axes, tensorType(getTable()).getDimSize(0));
}

bool GatherOp::hasNeutralPadding() { return true; } // rows that no index names

std::optional<double> GatherOp::resultPadding(const PaddingContext &context, unsigned) { return context.numberIn(0); }

StringRef GatherOp::kernelName() { return "gather_rows"; }
DictionaryAttr GatherOp::kernelConfig(bool) { return configOf(getContext(), getInRange()); }

LogicalResult GatherOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use, ValueRange operands,
                                        SmallVectorImpl<Value> &results) {
  results.push_back(GatherOp::create(builder, operands[0], operands[1], isInRange(use)));
  return success();
}

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

LogicalResult ScatterAddOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                      const Arithmetic &arithmetic) {
  const HostTensor &updates = operands[0], &indices = operands[1];
  HostTensor &result = results[0];
  llvm::fill(result.data, 0.0);
  int64_t rows = result.shape[0], rowSize = rows == 0 ? 0 : result.count() / rows;
  for (auto [i, index] : llvm::enumerate(indices.data)) {
    if (failed(checkIndex(*this, index, rows)))
      return failure();
    for (int64_t d = 0; d < rowSize; ++d) {
      double &sum = result.data[static_cast<int64_t>(index) * rowSize + d];
      sum = arithmetic.add(sum, updates.data[i * rowSize + d]);
    }
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
  // A shard of the result drops the updates of rows that it does not have.
  int64_t rows = rule.add(resultType.getDimSize(0));
  rule.operands = {joined(indices, row), indices};
  rule.results = {joined({{rows}}, row)};
  return rule;
}

double ScatterAddOp::flops() { return tensorType(getUpdates()).getNumElements(); }

// Updates of rows that this rank does not have are dropped.
void ScatterAddOp::localize(LocalContext &context) {
  LocalContext::Axes axes = context.axesOf(getResult(), 0);
  if (axes.empty())
    return;
  ImplicitLocOpBuilder builder(getLoc(), *this);
  int64_t part = getType().getDimSize(0);
  Value index = localizeIndices(getIndicesMutable(), getInRange(), context, builder, axes, part);
  Value updates = getUpdates();
  Value own = whereOwn(builder, alongRows(builder, index, tensorType(updates)), part, updates,
                       constantLike(builder, updates.getType(), 0));
  getUpdatesMutable().assign(own);
}

std::optional<double> ScatterAddOp::resultPadding(const PaddingContext &context, unsigned) {
  // Padding of the rows is zero, as no index names them; padding of the columns equals that of the updates.
  bool isZero = context.dimOfResult(0) == 0 || context.numberIn(0) == 0.0;
  return isZero ? std::optional(0.0) : std::nullopt;
}

StringRef ScatterAddOp::kernelName() { return "scatter_add_rows"; }
DictionaryAttr ScatterAddOp::kernelConfig(bool) { return configOf(getContext(), getInRange()); }

LogicalResult ScatterAddOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use, ValueRange operands,
                                            SmallVectorImpl<Value> &results) {
  results.push_back(ScatterAddOp::create(builder, use.results[0], operands[0], operands[1], isInRange(use)));
  return success();
}
