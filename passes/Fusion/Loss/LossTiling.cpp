//===- LossTiling.cpp - A loss behind a linear layer, computed for some positions at a time
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Loss/LossTiling.h"
#include "dialects/Dist/DistOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace bowline;

static int64_t rankOf(Value value) { return graph::tensorType(value).getRank(); }

static bool isRange(ArrayRef<int64_t> dims, int64_t size) { return llvm::equal(dims, llvm::seq<int64_t>(0, size)); }

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

std::optional<LossTiling> LossTiling::match(graph::SoftmaxCrossEntropyOp loss) {
  LossTiling tiling;
  tiling.loss = loss;
  if (!tiling.matchLogits(loss.getLogits()) || !tiling.logits)
    return std::nullopt;
  int64_t rank = rankOf(tiling.logits);
  for (int64_t dim = 0; dim < rank - 1; ++dim)
    tiling.positionCount *= graph::tensorType(tiling.logits).getDimSize(dim);

  // Positions are the first dimensions of the hidden values, and classes the free one of the weight.
  graph::DotGeneralOp dot = tiling.logits;
  if (!dot.getLhsBatch().empty() || rankOf(dot.getLhs()) != rank || rankOf(dot.getRhs()) != 2 ||
      dot.getLhsContract() != ArrayRef<int64_t>{rank - 1})
    return std::nullopt;

  Operation *last = loss.getLogits().getDefiningOp();
  if (last != dot && llvm::any_of(dot->getUsers(), [&](Operation *user) { return user != last; }))
    return std::nullopt;
  for (Operation *user : last->getUsers()) {
    if (user == loss)
      continue;
    // By name: the pattern is this loss, whose gradient needs nothing but the logits and a number per position.
    auto gradient = dyn_cast<graph::SoftmaxCrossEntropyGradOp>(user);
    if (!gradient || tiling.gradient || !tiling.matchGradient(gradient))
      return std::nullopt;
  }
  if (!tiling.isDefinedBefore(loss.getLabels()))
    return std::nullopt;
  // Users come in no order that can be relied on.
  llvm::sort(tiling.products, [](Product lhs, Product rhs) { return lhs.op->isBeforeInBlock(rhs.op); });
  return tiling;
}

static bool isSplat(Value value) {
  DenseElementsAttr elements;
  return matchPattern(value, m_Constant(&elements)) && elements.isSplat();
}

/// Finds the product that `value` is, or elementwise operations on it that treat a class alike at all positions.
bool LossTiling::matchLogits(Value value) {
  Operation *op = value.getDefiningOp();
  if (isSplat(value) || masks.contains(op))
    return true;
  if (!op || op->getBlock() != loss->getBlock())
    return false;
  // By name: the pattern is the loss behind a linear layer; tiles are such layers with fewer rows.
  if (auto dot = dyn_cast<graph::DotGeneralOp>(op)) {
    if (logits && logits != dot)
      return false;
    logits = dot;
    return true;
  }
  masks.insert(op);
  if (graph::isRepetition(op))
    return ArrayRef<int64_t>(graph::repeatedDims(op)) == ArrayRef<int64_t>{rankOf(value) - 1};
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumResults() == 1 &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return matchLogits(operand); });
}

bool LossTiling::isDefinedBefore(Value value) const {
  Operation *definition = value.getDefiningOp();
  return !definition || definition->hasTrait<OpTrait::ConstantLike>() ||
         (definition->getBlock() == loss->getBlock() && definition->isBeforeInBlock(loss));
}

bool LossTiling::matchGradient(graph::SoftmaxCrossEntropyGradOp op) {
  if (op.getLogits() != loss.getLogits() || op.getLabels() != loss.getLabels() || op->getBlock() != loss->getBlock() ||
      !matchStatistics(op.getLogsumexp()) || !isDefinedBefore(op.getLossGrad()))
    return false;
  gradient = op;
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    // By name: as in matchLogits.
    auto product = dyn_cast<graph::DotGeneralOp>(user);
    return product && matchProduct(product);
  });
}

/// Whether a result of `op` at a position depends on its operands at that position alone, those of all ranks.
bool LossTiling::isPerPosition(Operation *op) {
  auto bucket = dyn_cast<dist::BucketOp>(op);
  bool sums = isa<dist::AllReduceOp>(op) || (bucket && bucket.getKind() == dist::CollectiveKind::AllReduce);
  if (!sums && !op->hasTrait<OpTrait::Elementwise>())
    return false;
  ArrayRef<int64_t> shape = graph::tensorType(loss.getLoss()).getShape();
  auto hasPositions = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getShape() == shape;
  };
  return llvm::all_of(op->getOperands(), hasPositions) && llvm::all_of(op->getResults(), hasPositions);
}

/// Finds the operations that compute `logsumexp` from the loss, all per position and between the two.
bool LossTiling::matchStatistics(Value logsumexp) {
  llvm::SetVector<Operation *> found;
  SmallVector<Value> open{logsumexp};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (op == loss || found.contains(op) || (value != logsumexp && (isSplat(value) || isDefinedBefore(value))))
      continue;
    if (!op || op->getBlock() != loss->getBlock() || !loss->isBeforeInBlock(op) || !isPerPosition(op))
      return false;
    found.insert(op);
    llvm::append_range(open, op->getOperands());
  }
  statistics = found.takeVector();
  llvm::sort(statistics, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return true;
}

bool LossTiling::matchProduct(graph::DotGeneralOp op) {
  int64_t rank = rankOf(logits), positionDims = rank - 1;
  bool isLhs = op.getLhs() == gradient.getResult();
  Value other = isLhs ? op.getRhs() : op.getLhs();
  if (!op.getLhsBatch().empty() || other == gradient.getResult() || !isDefinedBefore(other))
    return false;
  ArrayRef<int64_t> contract = isLhs ? op.getLhsContract() : op.getRhsContract();
  ArrayRef<int64_t> otherContract = isLhs ? op.getRhsContract() : op.getLhsContract();
  if (isLhs && contract == ArrayRef<int64_t>{positionDims}) {
    products.push_back({op, /*perPosition=*/true});
    return true;
  }
  if (!isRange(contract, positionDims) || !isRange(otherContract, positionDims) || rankOf(other) != rank)
    return false;
  products.push_back({op, /*perPosition=*/false});
  return true;
}

int64_t LossTiling::bytesPerPosition() const {
  graph::DotGeneralOp dot = logits;
  RankedTensorType type = graph::tensorType(dot.getResult());
  return type.getShape().back() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

namespace {

/// The values of some positions, out of and back into whole tensors.
class FlatPositions {
public:
  FlatPositions(ImplicitLocOpBuilder &b, int64_t count, int64_t dims) : b(b), count(count), dims(dims) {}

  /// `value` with its position dimensions as one.
  Value flat(Value value) {
    Value &result = flattened[value];
    if (!result)
      result = reshaped(value, flatShape(graph::tensorType(value).getShape().drop_front(dims)));
    return result;
  }

  /// Positions [begin, begin + size) of a flat value.
  Value part(Value whole, int64_t begin, int64_t size) {
    if (size == count)
      return whole;
    SmallVector<int64_t> offsets(rankOf(whole), 0), sizes = llvm::to_vector(graph::tensorType(whole).getShape());
    offsets[0] = begin;
    sizes[0] = size;
    return graph::SliceOp::create(b, whole, offsets, sizes);
  }

  Value join(ArrayRef<Value> parts, Type type) {
    Value whole = parts.size() == 1 ? parts[0] : graph::ConcatOp::create(b, parts, int64_t(0));
    return reshaped(whole, cast<RankedTensorType>(type).getShape());
  }

private:
  SmallVector<int64_t> flatShape(ArrayRef<int64_t> rest) {
    SmallVector<int64_t> shape{count};
    llvm::append_range(shape, rest);
    return shape;
  }

  Value reshaped(Value value, ArrayRef<int64_t> shape) {
    RankedTensorType type = graph::tensorType(value).clone(shape);
    return type == value.getType() ? value : graph::ReshapeOp::create(b, type, value);
  }

  ImplicitLocOpBuilder &b;
  int64_t count, dims;
  DenseMap<Value, Value> flattened;
};

} // namespace

/// Tiles read constants where the loss stands.
void LossTiling::moveConstants(Operation *reader) {
  for (Value operand : reader->getOperands())
    if (Operation *definition = operand.getDefiningOp();
        definition && definition->hasTrait<OpTrait::ConstantLike>() && !definition->isBeforeInBlock(loss))
      definition->moveBefore(loss);
}

static Value splat(OpBuilder &builder, Value constant, RankedTensorType type) {
  DenseElementsAttr elements;
  matchPattern(constant, m_Constant(&elements));
  return arith::ConstantOp::create(builder, constant.getLoc(), elements.resizeSplat(type));
}

/// `value`, one of the masks, of one tile, whose product is in `tile` already.
Value LossTiling::tileLogits(OpBuilder &builder, IRMapping &tile, Value value) {
  if (Value known = tile.lookupOrNull(value))
    return known;
  auto type =
      cast<RankedTensorType>(value.getType()).clone(graph::tensorType(tile.lookup(logits.getResult())).getShape());
  Operation *op = value.getDefiningOp();
  if (isSplat(value)) {
    tile.map(value, splat(builder, value, type));
  } else if (graph::isRepetition(op)) {
    tile.map(value, graph::BroadcastOp::create(builder, op->getLoc(), type, op->getOperand(0), ArrayRef<int64_t>{1}));
  } else {
    for (Value operand : op->getOperands())
      tileLogits(builder, tile, operand);
    builder.clone(*op, tile)->getResult(0).setType(type);
  }
  return tile.lookup(value);
}

/// The statistics of the positions of one tile, whose loss is in `tile` already: the logsumexp of all classes.
Value LossTiling::tileStatistics(OpBuilder &builder, IRMapping &tile, llvm::function_ref<Value(Value)> part) {
  auto ofTile = [&](Type type) {
    return cast<RankedTensorType>(type).clone(graph::tensorType(tile.lookup(loss.getLoss())).getShape());
  };
  for (Operation *op : statistics) {
    for (Value operand : op->getOperands()) {
      if (tile.contains(operand))
        continue;
      if (isSplat(operand))
        tile.map(operand, splat(builder, operand, ofTile(operand.getType())));
      else
        tile.map(operand, part(operand));
    }
    Operation *copy = builder.clone(*op, tile);
    for (Value result : copy->getResults())
      result.setType(ofTile(result.getType()));
  }
  return tile.lookup(gradient.getLogsumexp());
}

void LossTiling::tile(int64_t tiles) {
  ImplicitLocOpBuilder b(logits.getLoc(), loss);
  int64_t dims = rankOf(logits) - 1, size = llvm::divideCeil(positionCount, tiles);
  FlatPositions positions(b, positionCount, dims);
  if (gradient)
    moveConstants(gradient);
  for (const Product &product : products)
    moveConstants(product.op);

  SmallVector<Value> losses, logSums;
  llvm::MapVector<Value, SmallVector<Value>> statisticParts;
  SmallVector<SmallVector<Value>> parts(products.size());
  for (int64_t begin = 0; begin < positionCount; begin += size) {
    int64_t count = std::min(size, positionCount - begin);
    auto part = [&](Value value) { return positions.part(positions.flat(value), begin, count); };
    b.setLoc(logits.getLoc());
    auto values = graph::DotGeneralOp::create(b, part(logits.getLhs()), logits.getRhs(), ArrayRef<int64_t>{},
                                              ArrayRef<int64_t>{}, ArrayRef<int64_t>{1}, logits.getRhsContract());
    values.getResult().setType(graph::tensorType(values).clone(graph::tensorType(logits).getElementType()));
    b.setLoc(loss.getLoc());
    IRMapping mapping;
    mapping.map(logits.getResult(), values.getResult());
    Value classes = tileLogits(b, mapping, loss.getLogits());
    Value labels = part(loss.getLabels());
    auto tile = graph::SoftmaxCrossEntropyOp::create(b, classes, labels);
    losses.push_back(tile.getLoss());
    logSums.push_back(tile.getLogsumexp());
    if (!gradient)
      continue;
    mapping.map(loss.getLoss(), tile.getLoss());
    mapping.map(loss.getLogsumexp(), tile.getLogsumexp());
    Value logsumexp = tileStatistics(b, mapping, part);
    for (Operation *op : statistics)
      for (Value result : op->getResults())
        statisticParts[result].push_back(mapping.lookup(result));
    b.setLoc(gradient.getLoc());
    Value grad = graph::SoftmaxCrossEntropyGradOp::create(b, classes, labels, logsumexp, part(gradient.getLossGrad()));
    for (auto [product, results] : llvm::zip_equal(products, parts)) {
      graph::DotGeneralOp op = product.op;
      b.setLoc(op.getLoc());
      bool isLhs = op.getLhs() == gradient.getResult();
      Value other = isLhs ? op.getRhs() : op.getLhs();
      if (product.perPosition) {
        auto rows = graph::DotGeneralOp::create(b, grad, other, ArrayRef<int64_t>{}, ArrayRef<int64_t>{},
                                                ArrayRef<int64_t>{1}, op.getRhsContract());
        rows.getResult().setType(graph::tensorType(rows).clone(graph::tensorType(op).getElementType()));
        results.push_back(rows);
        continue;
      }
      Value lhs = isLhs ? grad : part(other), rhs = isLhs ? part(other) : grad;
      auto sum = graph::DotGeneralOp::create(b, lhs, rhs, ArrayRef<int64_t>{}, ArrayRef<int64_t>{},
                                             ArrayRef<int64_t>{0}, ArrayRef<int64_t>{0});
      if (graph::tensorType(sum).getElementTypeBitWidth() < 32)
        sum.getResult().setType(graph::tensorType(sum).clone(b.getF32Type()));
      if (results.empty())
        results.push_back(sum);
      else
        results[0] = arith::AddFOp::create(b, results[0], sum);
    }
  }

  // Readers outside of the tiles get the joined parts of all tiles.
  llvm::SmallPtrSet<Operation *, 8> own(statistics.begin(), statistics.end());
  if (gradient)
    own.insert(gradient);
  auto isOutside = [&](OpOperand &use) { return !own.contains(use.getOwner()); };
  auto joinParts = [&](Value value, ArrayRef<Value> ofTiles) {
    b.setLoc(value.getLoc());
    if (llvm::any_of(value.getUses(), isOutside))
      value.replaceUsesWithIf(positions.join(ofTiles, value.getType()), isOutside);
  };
  joinParts(loss.getLoss(), losses);
  joinParts(loss.getLogsumexp(), logSums);
  for (auto &[value, ofTiles] : statisticParts)
    joinParts(value, ofTiles);
  for (auto [product, results] : llvm::zip_equal(products, parts)) {
    graph::DotGeneralOp op = product.op;
    b.setLoc(op.getLoc());
    Value whole = product.perPosition ? positions.join(results, op.getType()) : results[0];
    if (whole.getType() != op.getType())
      whole = arith::TruncFOp::create(b, op.getType(), whole);
    op.replaceAllUsesWith(whole);
    op.erase();
  }
  if (gradient)
    gradient.erase();
  for (Operation *op : llvm::reverse(statistics))
    op->erase();
  loss.erase();
  for (Operation *op : masks)
    if (op->use_empty())
      op->erase();
  logits.erase();
}
