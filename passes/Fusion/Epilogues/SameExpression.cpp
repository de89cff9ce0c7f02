//===- SameExpression.cpp - Whether two values are computed the same way
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Epilogues/SameExpression.h"

using namespace mlir;
using namespace bowline;

bool SameExpression::operator()(Value left, Value right) {
  if (auto found = known.find({left, right}); found != known.end())
    return found->second;
  bool same = compare(left, right);
  known[{left, right}] = same;
  return same;
}

bool SameExpression::compare(Value left, Value right) {
  Operation *a = left.getDefiningOp(), *b = right.getDefiningOp();
  if (!a || !b || left.getType() != right.getType() || a->getName() != b->getName() ||
      cast<OpResult>(left).getResultNumber() != cast<OpResult>(right).getResultNumber() ||
      a->getNumOperands() != b->getNumOperands() || a->getNumRegions() + b->getNumRegions() != 0 ||
      a->getAttrDictionary() != b->getAttrDictionary())
    return false;
  auto same = [&](unsigned i, unsigned j) { return (*this)(a->getOperand(i), b->getOperand(j)); };
  if (llvm::all_of(llvm::seq(a->getNumOperands()), [&](unsigned i) { return same(i, i); }))
    return true;
  return a->hasTrait<OpTrait::IsCommutative>() && a->getNumOperands() == 2 && same(0, 1) && same(1, 0);
}
