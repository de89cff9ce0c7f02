//===- ZeroRows.cpp - Which rows are zeros
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Selection/ZeroRows.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Graph/ValidRows.h"
#include "kernels/registry/valid_rows.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace bowline;

/// The count behind which the operation's kernel writes zeros to rows of its results; null where it writes none.
static Value countOfKernel(Operation *op) {
  auto model = dyn_cast_or_null<graph::KernelModel>(op);
  const kernels::ValidRows *rows =
      model ? kernels::FindValidRows(std::string_view(model.kernelName()), /*leaves_rows_out=*/false) : nullptr;
  return rows && llvm::is_contained(rows->zeros, op->getNumOperands()) ? op->getOperand(rows->count) : Value();
}

static bool isZero(Attribute attribute) {
  auto elements = dyn_cast_or_null<DenseFPElementsAttr>(attribute);
  return elements && elements.isSplat() && elements.getSplatValue<APFloat>().isZero();
}

/// Whether the operation computes zeros where those of its operands that `zeros` contains are zeros and the others are
/// constants.
static bool keepsZeros(Operation &op, const DenseSet<Value> &zeros) {
  if (!op.hasTrait<OpTrait::Elementwise>() || op.getNumResults() != 1)
    return false;
  SmallVector<Attribute> operands;
  for (Value operand : op.getOperands()) {
    Attribute constant;
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (zeros.contains(operand) && type && isa<FloatType>(type.getElementType()))
      constant = DenseElementsAttr::get(type, FloatAttr::get(type.getElementType(), 0.0));
    else if (!matchPattern(operand, m_Constant(&constant)))
      return false;
    operands.push_back(constant);
  }
  SmallVector<OpFoldResult> results;
  if (operands.empty() || failed(op.fold(operands, results)) || results.size() != 1)
    return false;
  if (auto value = dyn_cast<Value>(results[0]))
    return zeros.contains(value);
  return isZero(cast<Attribute>(results[0]));
}

namespace {

/// Asks for one count which values are zeros behind it.
class ZeroRows {
public:
  explicit ZeroRows(Value count) : count(count) {}

  bool has(Value value) {
    auto [known, isNew] = all.try_emplace(value, false);
    if (!isNew)
      return known->second;
    bool isZero = compute(value);
    all[value] = isZero;
    return isZero;
  }

private:
  bool compute(Value value) {
    auto result = dyn_cast<OpResult>(value);
    if (!result)
      return false;
    auto fusion = dyn_cast<graph::FusionOp>(result.getOwner());
    if (!fusion)
      return countOfKernel(result.getOwner()) == count;
    if (fusion.getValidRows())
      return false; // the rows left out are no zeros
    Block &body = fusion.getBody().front();
    DenseSet<Value> zeros;
    for (auto [argument, input] : llvm::zip_equal(body.getArguments(), fusion.getInputs()))
      if (has(input))
        zeros.insert(argument);
    for (Operation &op : body.without_terminator()) {
      auto own = dyn_cast_or_null<BlockArgument>(graph::countOfZeroedRows(&op));
      if ((own && fusion.getInputs()[own.getArgNumber()] == count) || keepsZeros(op, zeros))
        zeros.insert(op.getResult(0));
    }
    return zeros.contains(body.getTerminator()->getOperand(result.getResultNumber()));
  }

  Value count;
  DenseMap<Value, bool> all;
};

} // namespace

/// The counts that `value` may depend on.
static llvm::SetVector<Value> findCounts(Value value) {
  llvm::SetVector<Value> counts, reached;
  reached.insert(value);
  for (size_t i = 0; i < reached.size(); ++i) {
    Operation *producer = reached[i].getDefiningOp();
    if (Value count = countOfKernel(producer))
      counts.insert(count);
    auto fusion = dyn_cast_or_null<graph::FusionOp>(producer);
    if (!fusion)
      continue;
    reached.insert(fusion.getInputs().begin(), fusion.getInputs().end());
    for (Operation &op : fusion.getBody().front())
      if (auto own = dyn_cast_or_null<BlockArgument>(graph::countOfZeroedRows(&op)))
        counts.insert(fusion.getInputs()[own.getArgNumber()]);
  }
  return counts;
}

Value bowline::findZeroRowCount(Value value) {
  for (Value count : findCounts(value))
    if (ZeroRows(count).has(value))
      return count;
  return {};
}
