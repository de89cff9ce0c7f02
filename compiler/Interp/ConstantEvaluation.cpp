//===- ConstantEvaluation.cpp - Constants as their types round them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/ConstantEvaluation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

void bowline::evaluateConstants(Operation *root) {
  root->walk([](Operation *op) {
    SmallVector<Attribute> operands(op->getNumOperands());
    for (auto [operand, value] : llvm::zip_equal(op->getOperands(), operands))
      if (!matchPattern(operand, m_Constant(&value)))
        return;
    SmallVector<OpFoldResult, 1> results;
    if (operands.empty() || op->getNumResults() != 1 || failed(op->fold(operands, results)) || results.size() != 1)
      return;
    auto value = dyn_cast_or_null<DenseElementsAttr>(dyn_cast<Attribute>(results[0]));
    if (!value || value.getType() != op->getResult(0).getType())
      return;
    OpBuilder builder(op);
    op->replaceAllUsesWith(ValueRange(arith::ConstantOp::create(builder, op->getLoc(), value)));
    op->erase();
  });
}
