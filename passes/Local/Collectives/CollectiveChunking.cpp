//===- CollectiveChunking.cpp - Products and the collectives beside them, in chunks of rows
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Collectives/CollectiveChunking.h"
#include "dialects/Plan/PlanOps.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace bowline;

static constexpr int64_t kMostAutomatic = 8;

static double bytesOf(Value value) { return static_cast<double>(plan::byteCount(graph::tensorType(value))); }

/// A contraction whose rows, the first dimension of the result, are those of the first operand and of no other.
static bool isProductOfRows(Operation *op) {
  auto factored = dyn_cast_or_null<graph::Factored>(op);
  if (!factored || !graph::isContraction(op) || op->getNumResults() != 1 ||
      llvm::is_contained(llvm::drop_begin(op->getOperands()), op->getOperand(0)))
    return false;
  graph::FactorRule rule = factored.factorRule();
  if (rule.operands.front().empty() || rule.results.front().empty())
    return false;
  ArrayRef<int64_t> rows = rule.results.front().front();
  return rows.size() == 1 && ArrayRef<int64_t>(rule.operands.front().front()) == rows &&
         rule.factors[rows.front()].kind == graph::FactorRule::Kind::Parallel &&
         llvm::none_of(llvm::drop_begin(rule.operands), [&](const graph::FactorRule::TensorFactors &other) {
           return graph::hasFactor(other, rows.front());
         });
}

/// Chunk \p index of \p count along the first dimension.
static Value slice(OpBuilder &builder, Value value, int64_t index, int64_t count) {
  SmallVector<int64_t> sizes(graph::tensorType(value).getShape()), offsets(sizes.size(), 0);
  sizes[0] /= count;
  offsets[0] = index * sizes[0];
  return graph::SliceOp::create(builder, value.getLoc(), graph::tensorType(value).clone(sizes), value, offsets, sizes);
}

/// The operation on chunks instead of \p whole, whose results have as many rows less.
static Value onChunk(OpBuilder &builder, Operation *op, Value whole, Value chunk, int64_t count) {
  IRMapping mapping;
  mapping.map(whole, chunk);
  Operation *clone = builder.clone(*op, mapping);
  SmallVector<int64_t> shape(graph::tensorType(op->getResult(0)).getShape());
  shape[0] /= count;
  clone->getResult(0).setType(graph::tensorType(op->getResult(0)).clone(shape));
  return clone->getResult(0);
}

/// Chunks stay apart.
static void number(Value chunk, int64_t index) {
  chunk.getDefiningOp()->setAttr(dist::DistDialect::kRepetitionAttr,
                                 IntegerAttr::get(IntegerType::get(chunk.getContext(), 64), index));
}

static Value join(OpBuilder &builder, Location location, Type type, ArrayRef<Value> parts) {
  return graph::ConcatOp::create(builder, location, type, parts, /*dim=*/0);
}

int64_t CollectiveChunking::chooseChunks(int64_t rows, double flops, double wholeBytes, double copiedBytes,
                                         ArrayAttr axes, const collectives::Definition &collective) {
  pairs += rows > 1 ? 1 : 0;
  if (chunks > 0) {
    int64_t count = std::min(chunks, rows);
    while (rows % count != 0)
      --count;
    return count;
  }
  auto names = llvm::to_vector(axes.getAsRange<StringAttr>());
  auto ranks = static_cast<double>(mesh.getSize(names));
  targets::LinkOptions link = model.LinkAlong(llvm::map_range(names, [](StringAttr axis) { return axis.getValue(); }));
  auto secondsOf = [&](auto count) {
    double product = model.LaunchSeconds(flops / count, 0);
    double exchange = model.CollectiveSeconds(link, collective, wholeBytes / count, ranks);
    double copies = count > 1 ? model.CopySeconds(copiedBytes) + 2 * count * model.costs().command_seconds : 0;
    return product + (count - 1) * std::max(product, exchange) + exchange + copies;
  };
  int64_t best = 1;
  for (int64_t count = 2; count <= kMostAutomatic; ++count)
    if (rows % count == 0 && secondsOf(static_cast<double>(count)) < secondsOf(static_cast<double>(best)))
      best = count;
  return best;
}

bool CollectiveChunking::divideProduct(Operation *collective) {
  auto scatter = dyn_cast<dist::ReduceScatterOp>(collective);
  Operation *product = collective->getOperand(0).getDefiningOp();
  if (!isProductOfRows(product) || !product->hasOneUse() || (scatter && scatter.getDim() == 0))
    return false;
  Value lhs = product->getOperand(0), whole = product->getResult(0), result = collective->getResult(0);
  int64_t count = chooseChunks(graph::tensorType(lhs).getDimSize(0), cast<graph::CostModel>(product).flops(),
                               bytesOf(whole), bytesOf(lhs) + bytesOf(result),
                               collective->getAttrOfType<ArrayAttr>("axes"), dist::definitionOf(collective));
  if (count < 2)
    return false;
  OpBuilder builder(collective);
  SmallVector<Value> parts;
  for (int64_t index = 0; index < count; ++index) {
    Value part = onChunk(builder, product, lhs, slice(builder, lhs, index, count), count);
    parts.push_back(onChunk(builder, collective, whole, part, count));
    number(parts.back(), index);
  }
  result.replaceAllUsesWith(join(builder, collective->getLoc(), result.getType(), parts));
  collective->erase();
  product->erase();
  return true;
}

bool CollectiveChunking::divideGather(dist::AllGatherOp gather) {
  Value whole = gather.getResult(), source = gather.getInput();
  SmallVector<Operation *> products;
  double flops = 0, copied = bytesOf(source);
  for (Operation *user : whole.getUsers()) {
    if (!isProductOfRows(user) || user->getOperand(0) != whole)
      continue;
    products.push_back(user);
    flops += cast<graph::CostModel>(user).flops();
    copied += bytesOf(user->getResult(0));
  }
  if (products.empty() || gather.getDim() == 0)
    return false;
  int64_t count = chooseChunks(graph::tensorType(source).getDimSize(0), flops, bytesOf(whole), copied, gather.getAxes(),
                               dist::definitionOf(gather));
  if (count < 2)
    return false;
  OpBuilder builder(gather);
  SmallVector<Value> parts;
  for (int64_t index = 0; index < count; ++index) {
    parts.push_back(onChunk(builder, gather, source, slice(builder, source, index, count), count));
    number(parts.back(), index);
  }
  for (Operation *product : products) {
    builder.setInsertionPoint(product);
    SmallVector<Value> results;
    for (Value part : parts)
      results.push_back(onChunk(builder, product, whole, part, count));
    Value all = product->getResult(0);
    all.replaceAllUsesWith(join(builder, product->getLoc(), all.getType(), results));
    product->erase();
  }
  if (!whole.use_empty()) { // the gradient of a weight adds up all rows
    builder.setInsertionPoint(gather);
    whole.replaceAllUsesWith(join(builder, gather.getLoc(), whole.getType(), parts));
  }
  gather->erase();
  return true;
}

int64_t CollectiveChunking::run(Block &block) {
  int64_t divided = 0;
  // Each of them goes in its own turn alone; products may go in that of a gather before them.
  SmallVector<Operation *> collectives;
  for (Operation &op : block)
    if (isa<dist::AllReduceOp, dist::ReduceScatterOp, dist::AllGatherOp>(op) && !stage::isBetweenStages(&op))
      collectives.push_back(&op);
  for (Operation *op : collectives) {
    if (auto gather = dyn_cast<dist::AllGatherOp>(op))
      divided += divideGather(gather);
    else
      divided += divideProduct(op);
  }
  return divided;
}
