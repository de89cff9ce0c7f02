//===- LocalForms.cpp - Operations of a part that several operations compute together
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Placement/LocalForms.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bowline;

using ValuePlacements = SmallVector<ValuePlacement, 1>;

//===----------------------------------------------------------------------===//
// Numbers of a block
//===----------------------------------------------------------------------===//

/// The place of the rank along axes, times a number: the first element of its block.
static std::optional<std::pair<MeshAxes, int64_t>> firstOfBlock(Value value, dist::MeshOp mesh) {
  if (Value scalar = scalarOf(value))
    value = scalar;
  auto product = value.getDefiningOp<arith::MulIOp>();
  if (!product)
    return std::nullopt;
  auto place = product.getLhs().getDefiningOp<dist::CoordinateOp>();
  std::optional<double> part = splatOf(product.getRhs());
  if (!place || !part)
    return std::nullopt;
  return std::pair(meshAxes(place.getAxes(), mesh), static_cast<int64_t>(*part));
}

std::optional<LocalForms::Shifted> LocalForms::shifted(Value value) {
  // Numbers of rows may be repeated along the rows.
  if (auto broadcast = value.getDefiningOp<graph::BroadcastOp>()) {
    for (auto [position, dim] : llvm::enumerate(broadcast.getDims()))
      if (dim != static_cast<int64_t>(position))
        return std::nullopt;
    value = broadcast.getOperand();
  }
  auto difference = value.getDefiningOp<arith::SubIOp>();
  auto first = difference ? firstOfBlock(difference.getRhs(), mesh) : std::nullopt;
  if (!first)
    return std::nullopt;
  return Shifted{difference.getLhs(), first->second, first->first};
}

/// `value` compared with a constant.
static Value comparedWith(Value condition, arith::CmpIPredicate predicate, double number) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != predicate || splatOf(compare.getRhs()) != number)
    return {};
  return compare.getLhs();
}

/// `inside` where the shifted index is one of the block, else `outside`:
/// select(i >= 0, select(i < part, inside, outside), outside).
std::optional<LocalForms::Shifted> LocalForms::ownOr(Value value, Value &inside, Value &outside) {
  auto outer = value.getDefiningOp<arith::SelectOp>();
  auto inner = outer ? outer.getTrueValue().getDefiningOp<arith::SelectOp>() : arith::SelectOp();
  if (!inner)
    return std::nullopt;
  Value index = comparedWith(outer.getCondition(), arith::CmpIPredicate::sge, 0);
  std::optional<Shifted> own = index ? shifted(index) : std::nullopt;
  if (!own || comparedWith(inner.getCondition(), arith::CmpIPredicate::slt, static_cast<double>(own->part)) != index)
    return std::nullopt;
  inside = inner.getTrueValue();
  outside = inner.getFalseValue();
  bool isSame =
      outside == outer.getFalseValue() || (splatOf(outside) && splatOf(outside) == splatOf(outer.getFalseValue()));
  return isSame ? own : std::nullopt;
}

/// Labels among the block's classes, one past them for others, and negative ones as they are.
std::optional<LocalForms::Shifted> LocalForms::ownLabels(Value value) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  if (!select)
    return std::nullopt;
  Value labels = comparedWith(select.getCondition(), arith::CmpIPredicate::slt, 0), inside, outside;
  if (!labels || select.getTrueValue() != labels)
    return std::nullopt;
  std::optional<Shifted> own = ownOr(select.getFalseValue(), inside, outside);
  if (!own || own->index != labels || splatOf(outside) != static_cast<double>(own->part))
    return std::nullopt;
  return isShifted(inside, *own) ? own : std::nullopt;
}

/// Whether a value is the shifted index, not repeated.
bool LocalForms::isShifted(Value value, const Shifted &by) {
  std::optional<Shifted> found = shifted(value);
  return found && !value.getDefiningOp<graph::BroadcastOp>() && found->index == by.index && found->part == by.part &&
         found->axes == by.axes;
}

//===----------------------------------------------------------------------===//
// Rows of a table
//===----------------------------------------------------------------------===//

/// Calls `body` for each user of `whole` that is such an operation.
template <typename Op> static void forEachUse(Value whole, llvm::function_ref<void(Op)> body) {
  for (Operation *user : whole.getUsers())
    if (auto op = dyn_cast<Op>(user))
      body(op);
}

static bool isDividedOver(const ValuePlacement &placement, const MeshAxes &axes) {
  return llvm::any_of(axes, [&](StringAttr axis) { return !placement.isEqualAlong(axis); });
}

/// Rows that the rank has, and zeros for those that it does not have: a summand of the rows over the axes that divide
/// the table.
ValuePlacements LocalForms::rows(Operation *select) {
  Value inside, zero, row, first;
  std::optional<Shifted> own = ownOr(select->getResult(0), inside, zero);
  Operation *gather = own ? inside.getDefiningOp() : nullptr;
  if (!isa_and_nonnull<graph::GatherOp, graph::QuantizedGatherOp>(gather) || splatOf(zero) != 0.0)
    return {};
  Value localTable = gather->getOperand(0);
  std::optional<Shifted> index = ownOr(gather->getOperand(1), row, first);
  if (!index || index->index != own->index || index->axes != own->axes || index->part != own->part || !splatOf(first) ||
      !isShifted(row, *own))
    return {};
  if (graph::tensorType(localTable).getDimSize(0) != own->part)
    return {};
  ValuePlacements found;
  for (const ValuePlacement &table : lookup(localTable))
    for (const ValuePlacement &indices : lookup(own->index)) {
      if (table.isUniform || table.flat || !table.partial.empty() || table.axes[0] != own->axes ||
          isDividedOver(indices, own->axes) || !indices.partial.empty())
        continue;
      // Rows in blocks of bits are whole.
      bool areWhole =
          llvm::all_of(ArrayRef(table.axes).drop_front(), [](const MeshAxes &axes) { return axes.empty(); });
      if (isa<graph::QuantizedGatherOp>(gather) && !areWhole)
        continue;
      for (Operation *op : table.whole.getUsers()) {
        if (op->getName() != gather->getName() || op->getOperand(0) != table.whole ||
            op->getOperand(1) != indices.whole || op->getAttr("format") != gather->getAttr("format"))
          continue;
        ValuePlacement result = ValuePlacement::replicated(op->getResult(0));
        result.axes.assign(indices.axes.begin(), indices.axes.end());
        if (isa<graph::GatherOp>(op))
          llvm::append_range(result.axes, ArrayRef(table.axes).drop_front());
        result.axes.resize(graph::tensorType(op->getResult(0)).getRank());
        result.partial = own->axes;
        found.push_back(std::move(result));
      }
    }
  return found;
}

/// The sums of the rows that the rank has: updates of others count as zeros.
ValuePlacements LocalForms::scatteredRows(Operation *scatter) {
  auto local = cast<graph::ScatterAddOp>(scatter);
  Value updates, zero, row, first;
  std::optional<Shifted> own = ownOr(local.getUpdates(), updates, zero);
  if (!own || splatOf(zero) != 0.0 || graph::tensorType(local.getResult()).getDimSize(0) != own->part)
    return {};
  std::optional<Shifted> index = ownOr(local.getIndices(), row, first);
  if (!index || index->index != own->index || index->axes != own->axes || index->part != own->part ||
      !isShifted(row, *own))
    return {};
  ValuePlacements found;
  for (const ValuePlacement &update : lookup(updates))
    for (const ValuePlacement &indices : lookup(own->index)) {
      if (update.isUniform || update.flat || isDividedOver(update, own->axes) || isDividedOver(indices, own->axes) ||
          !indices.partial.empty() || !update.partial.empty())
        continue;
      size_t rank = indices.axes.size();
      if (ArrayRef(update.axes).take_front(rank) != ArrayRef(indices.axes))
        continue;
      forEachUse<graph::ScatterAddOp>(update.whole, [&](graph::ScatterAddOp op) {
        if (op.getUpdates() != update.whole || op.getIndices() != indices.whole)
          return;
        ValuePlacement result = ValuePlacement::replicated(op.getResult());
        result.axes.assign(1, own->axes);
        llvm::append_range(result.axes, ArrayRef(update.axes).drop_front(rank));
        for (const MeshAxes &axes : indices.axes)
          llvm::append_range(result.partial, axes);
        sortAxes(result.partial);
        result.setPadding(0, 0.0); // rows that no index names
        found.push_back(std::move(result));
      });
    }
  return found;
}

//===----------------------------------------------------------------------===//
// The loss over divided classes (Shoeybi et al., "Megatron-LM", 2019, section 3)
//===----------------------------------------------------------------------===//

/// Whether elements behind the last class have no weight in a sum of exponentials.
static bool hasNoExtraClasses(const ValuePlacement &logits, RankedTensorType local, dist::MeshOp mesh) {
  int64_t classes = graph::tensorType(logits.whole).getShape().back();
  int64_t all = local.getShape().back() * mesh.getSize(logits.axes.back());
  std::optional<double> padding = logits.paddingOf(logits.axes.size() - 1);
  return all == classes || (padding && *padding <= kAbsentLogit);
}

/// Whether the labels of the operation are counted from the first class of each rank's block.
static std::optional<MeshAxes> classAxes(const ValuePlacement &logits, Value local, dist::MeshOp mesh) {
  if (logits.isUniform || logits.flat || !logits.partial.empty() || logits.axes.back().empty() ||
      !hasNoExtraClasses(logits, graph::tensorType(local), mesh))
    return std::nullopt;
  return logits.axes.back();
}

static Value reduced(Value value, dist::ReduceKind kind, const MeshAxes &axes, dist::MeshOp mesh) {
  auto reduce = value.getDefiningOp<dist::AllReduceOp>();
  if (!reduce || reduce.getKind() != kind || meshAxes(reduce.getAxes(), mesh) != axes)
    return {};
  return reduce.getInput();
}

/// max + log(sum(exp(part - max))), the maximum and the sum over the ranks.
ValuePlacements LocalForms::logsumexp(Operation *add) {
  auto log = add->getOperand(1).getDefiningOp<math::LogOp>();
  auto maximum = add->getOperand(0).getDefiningOp<dist::AllReduceOp>();
  if (!log || !maximum || maximum.getKind() != dist::ReduceKind::Max)
    return {};
  MeshAxes axes = meshAxes(maximum.getAxes(), mesh);
  Value part = maximum.getInput(), power = reduced(log.getOperand(), dist::ReduceKind::Sum, axes, mesh);
  auto exp = power ? power.getDefiningOp<math::ExpOp>() : math::ExpOp();
  auto shifted = exp ? exp.getOperand().getDefiningOp<arith::SubFOp>() : arith::SubFOp();
  auto local = part.getDefiningOp<graph::SoftmaxCrossEntropyOp>();
  if (!shifted || shifted.getLhs() != part || shifted.getRhs() != maximum.getResult() || !local ||
      part != local.getLogsumexp())
    return {};
  ValuePlacements found;
  for (const ValuePlacement &logits : lookup(local.getLogits())) {
    if (classAxes(logits, local.getLogits(), mesh) != axes)
      continue;
    forEachUse<graph::SoftmaxCrossEntropyOp>(logits.whole, [&](graph::SoftmaxCrossEntropyOp op) {
      ValuePlacement result = ValuePlacement::replicated(op.getLogsumexp());
      result.axes.assign(logits.axes.begin(), std::prev(logits.axes.end()));
      found.push_back(std::move(result));
    });
  }
  return found;
}

/// Nothing where there is no label, else the logsumexp less the label's logit, which one rank has.
ValuePlacements LocalForms::loss(Operation *op) {
  auto select = cast<arith::SelectOp>(op);
  Value labels = comparedWith(select.getCondition(), arith::CmpIPredicate::slt, 0);
  auto whole = select.getFalseValue().getDefiningOp<arith::SubFOp>();
  if (!labels || !whole || splatOf(select.getTrueValue()) != 0.0)
    return {};
  auto chosen = whole.getRhs().getDefiningOp<dist::AllReduceOp>();
  auto logit = chosen ? chosen.getInput().getDefiningOp<arith::SubFOp>() : arith::SubFOp();
  auto local = logit ? logit.getLhs().getDefiningOp<graph::SoftmaxCrossEntropyOp>() : graph::SoftmaxCrossEntropyOp();
  if (!local || chosen.getKind() != dist::ReduceKind::Sum || logit.getLhs() != local.getLogsumexp() ||
      logit.getRhs() != local.getLoss())
    return {};
  std::optional<Shifted> own = ownLabels(local.getLabels());
  if (!own || own->index != labels || meshAxes(chosen.getAxes(), mesh) != own->axes ||
      own->part != graph::tensorType(local.getLogits()).getShape().back())
    return {};
  ValuePlacements found;
  for (const ValuePlacement &sum : lookup(whole.getLhs())) // the logsumexp of all classes
    for (const ValuePlacement &label : lookup(labels)) {
      auto of = sum.whole.getDefiningOp<graph::SoftmaxCrossEntropyOp>();
      if (!of || sum.whole != of.getLogsumexp() || of.getLabels() != label.whole || label.axes != sum.axes ||
          !label.partial.empty() || !sum.partial.empty() || isDividedOver(label, own->axes))
        continue;
      bool isSameLogits = llvm::any_of(lookup(local.getLogits()), [&](const ValuePlacement &logits) {
        return logits.whole == of.getLogits() && classAxes(logits, local.getLogits(), mesh) == own->axes &&
               ArrayRef(logits.axes).drop_back() == ArrayRef(label.axes);
      });
      if (!isSameLogits)
        continue;
      ValuePlacement result = sum;
      result.whole = of.getLoss();
      found.push_back(std::move(result));
    }
  return found;
}

ValuePlacements LocalForms::lossGrad(Operation *op) {
  auto local = cast<graph::SoftmaxCrossEntropyGradOp>(op);
  std::optional<Shifted> own = ownLabels(local.getLabels());
  if (!own || own->part != graph::tensorType(local.getLogits()).getShape().back())
    return {};
  auto isPlaced = [&](Value value, Value whole, ArrayRef<MeshAxes> rows) {
    std::optional<double> splat = splatOf(value);
    if (splat && splat == splatOf(whole))
      return true;
    return llvm::any_of(lookup(value), [&](const ValuePlacement &placement) {
      if (placement.isUniform)
        return scalarOf(whole) == placement.whole;
      return placement.whole == whole && ArrayRef(placement.axes) == rows && placement.partial.empty() &&
             !placement.flat;
    });
  };
  ValuePlacements found;
  for (const ValuePlacement &logits : lookup(local.getLogits())) {
    if (classAxes(logits, local.getLogits(), mesh) != own->axes)
      continue;
    ArrayRef<MeshAxes> rows = ArrayRef(logits.axes).drop_back();
    forEachUse<graph::SoftmaxCrossEntropyGradOp>(logits.whole, [&](graph::SoftmaxCrossEntropyGradOp of) {
      if (!isPlaced(own->index, of.getLabels(), rows) || !isPlaced(local.getLogsumexp(), of.getLogsumexp(), rows) ||
          !isPlaced(local.getLossGrad(), of.getLossGrad(), rows))
        return;
      ValuePlacement result = logits;
      result.whole = of.getResult();
      result.padding.clear();
      result.setPadding(result.axes.size() - 1, 0.0); // probabilities of classes with no weight
      found.push_back(std::move(result));
    });
  }
  return found;
}

//===----------------------------------------------------------------------===//
// Numbers and padding
//===----------------------------------------------------------------------===//

/// The numbers of a rank's block: its own, from 0, and the first one of the block.
ValuePlacements LocalForms::numbered(Operation *add) {
  auto iota = add->getOperand(0).getDefiningOp<graph::IotaOp>();
  auto first = firstOfBlock(add->getOperand(1), mesh);
  if (!iota || !first || graph::tensorType(iota).getDimSize(iota.getDim()) != first->second)
    return {};
  ValuePlacements found;
  // Any number of the whole program's operations count the same.
  for (const ValuePlacement &placement : lookup(iota.getResult())) {
    ValuePlacement result = placement;
    result.axes[iota.getDim()] = first->first;
    found.push_back(std::move(result));
  }
  return found;
}

/// `value` where the number of the element along a dimension is below the whole's size; a number behind the end.
ValuePlacements LocalForms::padded(Operation *op) {
  auto select = cast<arith::SelectOp>(op);
  auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
  std::optional<double> number = splatOf(select.getFalseValue());
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt || !number)
    return {};
  auto numbers = compare.getLhs().getDefiningOp<graph::BroadcastOp>();
  std::optional<double> end = splatOf(compare.getRhs());
  if (!numbers || !end || numbers.getDims().size() != 1)
    return {};
  int64_t dim = numbers.getDims()[0];
  auto sum = numbers.getOperand().getDefiningOp<arith::AddIOp>();
  auto iota = sum ? sum.getLhs().getDefiningOp<graph::IotaOp>() : graph::IotaOp();
  auto first = sum ? firstOfBlock(sum.getRhs(), mesh) : std::nullopt;
  if (!iota || !first || first->second != graph::tensorType(iota).getDimSize(0))
    return {};
  ValuePlacements found;
  for (const ValuePlacement &placement : lookup(select.getTrueValue())) {
    if (placement.isUniform || placement.flat || placement.axes[dim] != first->first ||
        graph::tensorType(placement.whole).getDimSize(dim) != static_cast<int64_t>(*end))
      continue;
    ValuePlacement result = placement;
    result.padding.clear(); // of other dimensions it is this number in part
    result.setPadding(dim, number);
    found.push_back(std::move(result));
  }
  return found;
}

ValuePlacements LocalForms::find(OpResult value) {
  Operation *op = value.getOwner();
  return llvm::TypeSwitch<Operation *, ValuePlacements>(op)
      .Case<arith::SelectOp>([&](auto) {
        for (auto lemma : {&LocalForms::rows, &LocalForms::loss, &LocalForms::padded})
          if (ValuePlacements found = (this->*lemma)(op); !found.empty())
            return found;
        return ValuePlacements();
      })
      .Case<graph::ScatterAddOp>([&](auto) { return scatteredRows(op); })
      .Case<arith::AddFOp>([&](auto) { return logsumexp(op); })
      .Case<graph::SoftmaxCrossEntropyGradOp>([&](auto) { return lossGrad(op); })
      .Case<arith::AddIOp>([&](auto) { return numbered(op); })
      .Default([](Operation *) { return ValuePlacements(); });
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

std::optional<ValuePlacement> bowline::placeRandom(Operation *localOp, Operation *wholeOp, dist::MeshOp mesh) {
  auto local = cast<graph::RandomOp>(localOp), whole = cast<graph::RandomOp>(wholeOp);
  if (local.getStddevAttr() != whole.getStddevAttr() || local.getSeed() != whole.getSeed() ||
      local.getStream() != whole.getStream() || whole.getWhole())
    return std::nullopt;
  RankedTensorType type = graph::tensorType(whole.getResult()), part = graph::tensorType(local.getResult());
  ArrayRef<int64_t> shape = local.getWhole().value_or(part.getShape());
  ValuePlacement result = ValuePlacement::replicated(whole.getResult());
  for (size_t dim = 0; dim < result.axes.size(); ++dim)
    result.setPadding(dim, 0.0); // the operation's definition
  bool isFlat = type.getRank() != 1 && shape == ArrayRef<int64_t>{type.getNumElements()};
  if (!isFlat && shape != type.getShape())
    return std::nullopt;
  if (isFlat)
    result.flat.emplace();
  for (auto [dim, place] : llvm::zip_equal(local.getShardedDims(), local.getPlaces())) {
    auto coordinate = place.getDefiningOp<dist::CoordinateOp>();
    if (!coordinate)
      return std::nullopt;
    (isFlat ? *result.flat : result.axes[dim]) = meshAxes(coordinate.getAxes(), mesh);
  }
  if (isFlat && part.getNumElements() * mesh.getSize(*result.flat) > type.getNumElements())
    result.tail = 0.0;
  return result;
}
