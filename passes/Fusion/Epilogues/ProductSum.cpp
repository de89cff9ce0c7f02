//===- ProductSum.cpp - Sums over the dimensions that a product sums over
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Epilogues/ProductSum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/UsesInOrder.h"
#include "passes/Fusion/Epilogues/ProductCall.h"

using namespace mlir;
using namespace bowline;

/// The summed tensor, before it was widened.
static Value summedBy(graph::ReduceOp sum) {
  auto widened = sum.getInput().getDefiningOp<arith::ExtFOp>();
  return widened ? widened.getIn() : sum.getInput();
}

/// The dimensions of an operand over which its reader sums, in order.
static SmallVector<int64_t> contractedDims(OpOperand &use) {
  auto factored = dyn_cast<graph::Factored>(use.getOwner());
  if (!factored)
    return {};
  graph::FactorRule rule = factored.factorRule();
  SmallVector<int64_t> dims;
  for (auto [dim, factors] : llvm::enumerate(rule.operands[use.getOperandNumber()]))
    if (llvm::any_of(factors,
                     [&](int64_t factor) { return rule.factors[factor].kind == graph::FactorRule::Kind::Reduction; }))
      dims.push_back(static_cast<int64_t>(dim));
  return dims;
}

/// Whether all that uses results of `first` or `second` stands behind both.
static bool areUsedBehind(Operation *first, Operation *second) {
  Operation *last = first->isBeforeInBlock(second) ? second : first;
  return llvm::all_of(ArrayRef<Operation *>{first, second}, [&](Operation *op) {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      Operation *inBlock = last->getBlock()->findAncestorOpInBlock(*user);
      return inBlock && last->isBeforeInBlock(inBlock);
    });
  });
}

std::optional<ProductSum> ProductSum::match(graph::ReduceOp sum, const ModuleTarget &target) {
  Value summed = summedBy(sum);
  if (sum.getKind() != graph::ReduceKind::Sum || !sum.getType().getElementType().isF32())
    return std::nullopt;
  for (OpOperand *use : usesInOrder(summed)) {
    auto product = dyn_cast<graph::KernelModel>(use->getOwner());
    if (!product || !product.epilogueRowDims() || product->getNumOperands() != 2 ||
        product->getOperand(0) == product->getOperand(1) || product->getBlock() != sum->getBlock())
      continue;
    if (contractedDims(*use) != sum.getDims() || !areUsedBehind(product, sum))
      continue;
    StringRef epilogue = use->getOperandNumber() == 0 ? "sum_a" : "sum_b";
    Type results[] = {product->getResult(0).getType(), sum.getType()};
    if (productCallOf(product, epilogue, product->getOperandTypes(), results).isComputedBy(target))
      return ProductSum(sum, product, epilogue);
  }
  return std::nullopt;
}

graph::FusionOp ProductSum::fuse() {
  Operation *last = sum->isBeforeInBlock(product) ? product.getOperation() : sum.getOperation();
  OpBuilder builder(last);
  Location loc = FusedLoc::get(sum.getContext(), {product->getLoc(), sum.getLoc()});
  auto fused = graph::FusionOp::create(builder, loc, TypeRange{product->getResult(0).getType(), sum.getType()},
                                       product->getOperands());
  fused.setEpilogue(epilogue);
  Block &body = fused.getBody().emplaceBlock();
  for (Value operand : product->getOperands())
    body.addArgument(operand.getType(), operand.getLoc());
  builder.setInsertionPointToStart(&body);
  Operation *contraction = builder.clone(*product);
  contraction->setOperands(body.getArguments());
  Value summed = body.getArgument(epilogue == "sum_a" ? 0 : 1);
  if (auto widened = sum.getInput().getDefiningOp<arith::ExtFOp>())
    summed = arith::ExtFOp::create(builder, widened.getLoc(), widened.getType(), summed);
  Value added = graph::ReduceOp::create(builder, sum.getLoc(), graph::ReduceKind::Sum, summed, sum.getDims());
  graph::YieldOp::create(builder, loc, ValueRange{contraction->getResult(0), added});

  product->getResult(0).replaceAllUsesWith(fused.getResult(0));
  sum.replaceAllUsesWith(fused.getResult(1));
  Operation *widened = sum.getInput().getDefiningOp<arith::ExtFOp>();
  sum.erase();
  if (widened && widened->use_empty())
    widened->erase();
  product->erase();
  return fused;
}
