//===- ValidRows.cpp - Rows that no operation reads
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Selection/ValidRows.h"
#include "dialects/Graph/ValidRows.h"
#include "dialects/Program/ValidRows.h"
#include "kernels/registry/valid_rows.h"
#include "mlir/IR/Builders.h"
#include "passes/Fusion/Selection/ZeroRows.h"

using namespace mlir;
using namespace bowline;
using graph::FactorRule;

/// Marks the operands of `op`, each row of whose results is needed by itself, as needed row by row or whole. Fails
/// where a row needs others.
static LogicalResult markOperands(Operation *op, DenseSet<Value> &byRow, DenseSet<Value> &whole) {
  if (op->getNumOperands() == 0)
    return success();
  auto factored = dyn_cast<graph::Factored>(op);
  if (!factored)
    return failure();
  FactorRule rule = factored.factorRule();
  std::optional<int64_t> row;
  for (auto [result, factors] : llvm::zip_equal(op->getResults(), rule.results)) {
    if (factors.empty() || factors.front().size() != 1 || row.value_or(factors.front().front()) != factors.front()[0])
      return failure();
    row = factors.front().front();
  }
  if (rule.factors[*row].kind != FactorRule::Kind::Parallel)
    return failure();
  for (auto [operand, factors] : llvm::zip_equal(op->getOperands(), rule.operands)) {
    // The operation needs all of an operand that has the rows in another dimension, such as its columns.
    bool hasRows = !factors.empty() && factors.front().size() == 1 && factors.front().front() == *row;
    (hasRows ? byRow : whole).insert(operand);
  }
  return success();
}

std::optional<SmallVector<int64_t>> bowline::findRowInputs(graph::FusionOp fusion) {
  if (fusion.getContraction() || !haveRowsToLeaveOut(fusion.getOutputs().getTypes()))
    return std::nullopt;
  Block &body = fusion.getBody().front();
  DenseSet<Value> byRow(body.getTerminator()->operand_begin(), body.getTerminator()->operand_end()), whole;
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    auto isIn = [&](const DenseSet<Value> &values) {
      return llvm::any_of(op.getResults(), [&](Value result) { return values.contains(result); });
    };
    if (isIn(whole))
      whole.insert(op.operand_begin(), op.operand_end());
    else if (isIn(byRow) && failed(markOperands(&op, byRow, whole)))
      return std::nullopt;
  }
  SmallVector<int64_t> inputs;
  for (BlockArgument argument : body.getArguments())
    if (byRow.contains(argument) && !whole.contains(argument))
      inputs.push_back(argument.getArgNumber());
  return inputs;
}

static const kernels::ValidRows *formOf(graph::KernelModel op, bool leavesRowsOut) {
  return kernels::FindValidRows(std::string_view(op.kernelName()), leavesRowsOut);
}

bool bowline::isRowCount(OpOperand &use) {
  if (auto fusion = dyn_cast<graph::FusionOp>(use.getOwner()))
    return fusion.getValidRows() && fusion.getValidRows()->front() == static_cast<int64_t>(use.getOperandNumber());
  auto model = dyn_cast<graph::KernelModel>(use.getOwner());
  const kernels::ValidRows *rows = model ? formOf(model, /*leavesRowsOut=*/false) : nullptr;
  return rows && rows->count == use.getOperandNumber();
}

/// The count behind which rows of the operand are not read; null where all are.
static Value countOf(OpOperand &use) {
  auto number = static_cast<int64_t>(use.getOperandNumber());
  if (auto fusion = dyn_cast<graph::FusionOp>(use.getOwner())) {
    ArrayRef<int64_t> rows = fusion.getValidRows().value_or(ArrayRef<int64_t>());
    return !rows.empty() && llvm::is_contained(rows.drop_front(), number) ? fusion.getInputs()[rows.front()] : Value();
  }
  auto model = dyn_cast<graph::KernelModel>(use.getOwner());
  const kernels::ValidRows *rows = model ? formOf(model, /*leavesRowsOut=*/false) : nullptr;
  return rows && llvm::is_contained(rows->arguments, number) ? use.getOwner()->getOperand(rows->count) : Value();
}

Value bowline::findRowCount(Operation *op) {
  Value count;
  for (Value result : op->getResults())
    for (OpOperand &use : result.getUses()) {
      Value own = countOf(use);
      if (!own || (count && own != count))
        return {};
      count = own;
    }
  Operation *producer = count ? count.getDefiningOp() : nullptr;
  return producer && !producer->isBeforeInBlock(op) ? Value() : count;
}

void bowline::leaveRowsOut(graph::FusionOp fusion, Value count, ArrayRef<int64_t> rowInputs) {
  Block &body = fusion.getBody().front();
  int64_t number = llvm::find(fusion.getInputs(), count) - fusion.getInputs().begin();
  if (number == static_cast<int64_t>(fusion.getInputs().size())) {
    fusion.getInputsMutable().append(count);
    body.addArgument(count.getType(), count.getLoc());
  }
  SmallVector<int64_t> rows = {number};
  // A count may be read row by row besides: it is read whole for its last element.
  llvm::copy_if(rowInputs, std::back_inserter(rows), [&](int64_t input) { return input != number; });
  for (unsigned output = 0; output < fusion.getOutputs().size(); ++output)
    rows.push_back(fusion.getInputs().size() + output);
  fusion.setValidRows(ArrayRef<int64_t>(rows));
  // Operations that set these rows to zero have nothing to do.
  for (Operation &op : llvm::make_early_inc_range(body))
    if (graph::countOfZeroedRows(&op) == body.getArgument(number)) {
      op.replaceAllUsesWith(op.getOperands().take_front(1));
      op.erase();
    }
}

Value bowline::findKernelRowCount(graph::KernelModel op) {
  const kernels::ValidRows *form = formOf(op, /*leavesRowsOut=*/true), *usual = formOf(op, /*leavesRowsOut=*/false);
  if (!form)
    return {};
  Value count;
  if (form->zeros.empty())
    count = haveRowsToLeaveOut(op->getResultTypes()) ? findRowCount(op) : Value();
  for (uint32_t zeros : form->zeros) {
    Value own = findZeroRowCount(op->getOperand(zeros));
    if (!own || (count && own != count))
      return {};
    count = own;
  }
  // The kernel reads its own count, if it has one.
  return usual && count != op->getOperand(form->count) ? Value() : count;
}

void bowline::leaveRowsOut(graph::KernelModel op, Value count) {
  const kernels::ValidRows &form = *formOf(op, /*leavesRowsOut=*/true);
  SmallVector<Value> inputs(op->getOperands());
  if (form.count == inputs.size())
    inputs.push_back(count);
  OpBuilder builder(op);
  auto fusion = graph::FusionOp::create(builder, op.getLoc(), op->getResultTypes(), inputs);
  Block &body = fusion.getBody().emplaceBlock();
  for (Value input : inputs)
    body.addArgument(input.getType(), op.getLoc());
  op->replaceAllUsesWith(fusion.getOutputs());
  op->moveBefore(&body, body.end());
  op->setOperands(ValueRange(body.getArguments()).take_front(op->getNumOperands()));
  builder.setInsertionPointToEnd(&body);
  graph::YieldOp::create(builder, op.getLoc(), op->getResults());
  SmallVector<int64_t> rows = {form.count};
  rows.append(form.arguments.begin(), form.arguments.end());
  fusion.setValidRows(ArrayRef<int64_t>(rows));
}
