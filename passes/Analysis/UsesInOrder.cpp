//===- UsesInOrder.cpp - The uses of a value as the program has them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/UsesInOrder.h"
#include "mlir/IR/Operation.h"

using namespace mlir;

/// Whether \p lhs stands before \p rhs, or around it.
static bool isBefore(Operation *lhs, Operation *rhs) {
  for (Operation *outer = lhs; outer && outer->getBlock(); outer = outer->getParentOp())
    if (Operation *other = outer->getBlock()->findAncestorOpInBlock(*rhs)) {
      if (outer != other)
        return outer->isBeforeInBlock(other);
      return lhs == outer && lhs != rhs;
    }
  return false;
}

llvm::SmallVector<OpOperand *> bowline::usesInOrder(Value value) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : value.getUses())
    uses.push_back(&use);
  llvm::sort(uses, [](OpOperand *lhs, OpOperand *rhs) {
    if (lhs->getOwner() == rhs->getOwner())
      return lhs->getOperandNumber() < rhs->getOperandNumber();
    return isBefore(lhs->getOwner(), rhs->getOwner());
  });
  return uses;
}
