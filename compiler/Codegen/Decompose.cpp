//===- Decompose.cpp - Layers as elementwise operations and reductions
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Decompose.h"
#include "dialects/Graph/GraphOpInterfaces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace bowline;

/// Whether `erf` is used in 1 + erf(x) alone, as in the derivative of gelu.
static bool isOnlyAddedToOne(math::ErfOp erf) {
  return llvm::all_of(erf->getUsers(), [&](Operation *user) {
    auto sum = dyn_cast<arith::AddFOp>(user);
    return sum && matchPattern(sum.getLhs() == erf ? sum.getRhs() : sum.getLhs(), m_OneFloat());
  });
}

void codegen::decomposeLayers(Block &block) {
  for (auto erf : block.getOps<math::ErfOp>())
    if (isOnlyAddedToOne(erf))
      erf->setAttr(graph::kBesideOne, UnitAttr::get(erf.getContext()));
  for (auto op : llvm::make_early_inc_range(block.getOps<graph::FusionModel>())) {
    OpBuilder builder(op);
    SmallVector<Value> results = op.decompose(builder);
    if (results.empty())
      continue;
    op->replaceAllUsesWith(results);
    op->erase();
  }
}
