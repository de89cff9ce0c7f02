//===- SameExpression.h - Whether two values are computed the same way
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_FUSION_EPILOGUES_SAMEEXPRESSION_H
#define BOWLINE_PASSES_FUSION_EPILOGUES_SAMEEXPRESSION_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace bowline {

/// Tests whether two values, of any blocks, are computed by equal trees of operations without regions. Operands of a
/// commutative operation may differ in order. Block arguments are equal only if `assume` said so. Takes time linear in
/// the number of pairs of values that it compares.
class SameExpression {
public:
  void assume(mlir::Value left, mlir::Value right) { known[{left, right}] = true; }

  bool operator()(mlir::Value left, mlir::Value right);

private:
  bool compare(mlir::Value left, mlir::Value right);

  llvm::DenseMap<std::pair<mlir::Value, mlir::Value>, bool> known;
};

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_EPILOGUES_SAMEEXPRESSION_H
