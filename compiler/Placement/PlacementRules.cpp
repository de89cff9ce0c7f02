//===- PlacementRules.cpp - Placements of the results of an operation on placed operands
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Placement/PlacementRules.h"
#include "dialects/Graph/FactorRule.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Graph/PaddingContext.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace bowline;
using graph::FactorRule;

static std::string join(ArrayRef<StringAttr> axes) {
  return llvm::join(llvm::map_range(axes, [](StringAttr axis) { return axis.getValue(); }), ", ");
}

//===----------------------------------------------------------------------===//
// Sums that are still to be taken
//===----------------------------------------------------------------------===//

/// Whether an operation is linear in one operand, the others being the same on all ranks: of summands it gives
/// summands.
static bool isLinearIn(Operation *op, unsigned operand) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<arith::MulFOp, graph::DotGeneralOp>([](auto) { return true; })
      .Case<arith::DivFOp>([&](auto) { return operand == 0; })
      .Case<arith::NegFOp, arith::ExtFOp, arith::TruncFOp, graph::BroadcastOp, graph::TransposeOp, graph::ReshapeOp,
            graph::SliceOp, graph::PadOp>([](auto) { return true; })
      .Case<graph::ReduceOp>([](graph::ReduceOp reduce) { return reduce.getKind() == graph::ReduceKind::Sum; })
      .Case<graph::GatherOp, graph::ScatterAddOp>([&](auto) { return operand == 0; })
      .Case<graph::RopeOp>([&](auto) { return operand == 0; })
      .Default([](Operation *) { return false; });
}

/// Whether an operation is linear in all operands that `isPartial` marks together.
static bool isJointlyLinear(Operation *op, ArrayRef<bool> isPartial) {
  int64_t count = llvm::count(isPartial, true);
  if (count == 1)
    return isLinearIn(op, static_cast<unsigned>(llvm::find(isPartial, true) - isPartial.begin())) &&
           !isa<arith::AddFOp, arith::SubFOp, arith::SelectOp>(op);
  if (isa<arith::SelectOp>(op))
    return !isPartial[0] && isPartial[1] && isPartial[2];
  return isa<arith::AddFOp, arith::SubFOp, graph::ConcatOp>(op) && count == static_cast<int64_t>(isPartial.size());
}

namespace {
/// The axes over which operands are summands, which must be the same for all that are.
struct Summands {
  MeshAxes axes;
  dist::ReduceKind combine = dist::ReduceKind::Sum;
  std::string why;
};
} // namespace

static Summands summandsOf(Operation *op, ArrayRef<ValuePlacement> operands) {
  Summands found;
  SmallVector<bool> isPartial;
  for (const ValuePlacement &operand : operands) {
    isPartial.push_back(!operand.partial.empty());
    if (operand.partial.empty())
      continue;
    if (!found.axes.empty() && (found.axes != operand.partial || found.combine != operand.combine))
      return {{}, {}, "its operands are summands over different axes"};
    found.axes = operand.partial;
    found.combine = operand.combine;
  }
  if (found.axes.empty())
    return found;
  // Adding zero to one summand of a sum is adding zero to the sum.
  if (isa<arith::AddFOp, arith::SubFOp, arith::SelectOp>(op))
    for (auto [flag, operand] : llvm::zip(isPartial, op->getOperands()))
      flag |= splatOf(operand) == 0.0;
  if (found.combine != dist::ReduceKind::Sum && !isa<graph::ReshapeOp, graph::TransposeOp, graph::BroadcastOp>(op))
    found.why = "it takes parts of a maximum over " + join(found.axes);
  else if (!isJointlyLinear(op, isPartial))
    found.why = "it needs the sum over " + join(found.axes) + ", of which each rank has a summand";
  return found;
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

namespace {
/// The axes that divide each factor of an operation.
class FactorAxes {
public:
  FactorAxes(const FactorRule &rule, const PlacementRules &ranks)
      : rule(rule), ranks(ranks), axes(rule.factors.size()), isSet(rule.factors.size(), false) {}

  /// Takes the placement of an operand. Returns why it contradicts the operands before.
  std::string take(const FactorRule::TensorFactors &tensor, const ValuePlacement &placement) {
    for (auto [dim, factors] : llvm::enumerate(tensor)) {
      if (placement.isRepeated(dim))
        continue;
      std::string why = takeDim(factors, placement.axes[dim]);
      if (!why.empty())
        return "dimension " + std::to_string(dim) + " " + why;
    }
    return "";
  }

  const MeshAxes &of(int64_t factor) const { return axes[factor]; }
  /// Whether no operand has the factor, but as a dimension of equal elements.
  bool isFree(int64_t factor) const { return !isSet[factor]; }

private:
  std::string takeDim(ArrayRef<int64_t> factors, ArrayRef<StringAttr> dimAxes) {
    SmallVector<MeshAxes> found(factors.size());
    size_t at = 0;
    int64_t left = factors.empty() ? 1 : rule.factors[factors[0]].size;
    for (StringAttr axis : dimAxes) {
      int64_t count = ranks.ranksAlong(axis);
      while (left == 1 && at + 1 < factors.size())
        left = rule.factors[factors[++at]].size;
      bool isAlone = factors.size() == 1; // and may be padded
      if (factors.empty() || (!isAlone && left % count != 0))
        return "is divided over " + axis.getValue().str() +
               ", within a factor of the dimension that the operation needs whole";
      found[at].push_back(axis);
      left = llvm::divideCeil(left, count);
    }
    for (auto [factor, names] : llvm::zip(factors, found)) {
      if (isSet[factor] && axes[factor] != names)
        return "is divided over [" + join(names) + "], and in another operand over [" + join(axes[factor]) + "]";
      isSet[factor] = true;
      axes[factor] = names;
    }
    return "";
  }

  const FactorRule &rule;
  const PlacementRules &ranks;
  SmallVector<MeshAxes> axes;
  SmallVector<bool> isSet;
};
} // namespace

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

namespace {
/// The numbers that operands have behind the end of one dimension, or of all elements.
class OperandPadding : public graph::PaddingContext {
public:
  OperandPadding(Operation *op, SmallVector<Number> numbers) : op(op), numbers(std::move(numbers)) {}

  FactorRule::Kind kind() const override { return FactorRule::Kind::Parallel; }
  std::optional<int64_t> dimOfOperand(unsigned) const override { return std::nullopt; }
  std::optional<int64_t> dimOfResult(unsigned) const override { return std::nullopt; }
  Number numberIn(unsigned operand) const override {
    if (std::optional<double> splat = splatOf(op->getOperand(operand)))
      return splat;
    return numbers[operand];
  }
  void require(unsigned, double) override {}

private:
  Operation *op;
  SmallVector<Number> numbers;
};
} // namespace

/// The number that the result has there. Numbers that are not known are finite.
static std::optional<double> combinePadding(Operation *op, SmallVector<std::optional<double>> numbers) {
  OperandPadding padding(op, std::move(numbers));
  if (isa<graph::ReshapeOp, graph::TransposeOp, graph::BroadcastOp, graph::GatherOp, graph::RopeOp>(op))
    return padding.numberIn(0);
  if (op->hasTrait<OpTrait::Elementwise>()) {
    std::optional<double> number = graph::paddingByEvaluation(op, padding);
    if (number || !isa<arith::MulFOp>(op))
      return number;
  }
  if (isa<arith::MulFOp, graph::DotGeneralOp>(op)) {
    std::optional<double> a = padding.numberIn(0), b = padding.numberIn(1);
    bool isZero = (a == 0.0 && (!b || std::isfinite(*b))) || (b == 0.0 && (!a || std::isfinite(*a)));
    return isZero ? std::optional(0.0) : std::nullopt;
  }
  if (auto reduce = dyn_cast<graph::ReduceOp>(op)) {
    std::optional<double> number = padding.numberIn(0);
    return reduce.getKind() == graph::ReduceKind::Max || number == 0.0 ? number : std::nullopt;
  }
  return std::nullopt;
}

/// The numbers that operands have behind the end of a factor; none is known of those that lack it.
static SmallVector<std::optional<double>> paddingAlong(const FactorRule &rule, int64_t factor,
                                                       ArrayRef<ValuePlacement> operands) {
  SmallVector<std::optional<double>> numbers(operands.size());
  for (auto [number, tensor] : llvm::enumerate(rule.operands))
    for (auto [dim, factors] : llvm::enumerate(tensor))
      if (!factors.empty() && factors.front() == factor && !operands[number].isUniform)
        numbers[number] = operands[number].paddingOf(dim);
  return numbers;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

std::string PlacementRules::mismatch(RankedTensorType local, const ValuePlacement &placement) const {
  RankedTensorType whole = graph::tensorType(placement.whole);
  if (local.getElementType() != whole.getElementType())
    return "its elements are of another type";
  if (placement.isUniform)
    return "";
  if (placement.flat) {
    int64_t all = local.getNumElements() * ranksAlong(*placement.flat), block = 1;
    for (auto [size, axes] : llvm::zip_equal(whole.getShape(), placement.axes))
      block *= static_cast<int64_t>(llvm::divideCeil(size, ranksAlong(axes)));
    return local.getRank() == 1 && all >= block ? "" : "a flat shard has one dimension, and enough elements";
  }
  if (local.getRank() != whole.getRank())
    return "it has " + std::to_string(local.getRank()) + " dimensions";
  for (int64_t dim = 0; dim < local.getRank(); ++dim) {
    if (placement.isRepeated(dim))
      continue;
    int64_t all = local.getDimSize(dim) * ranksAlong(placement.axes[dim]), size = whole.getDimSize(dim);
    if (all < size) // elements beyond these lie behind the end
      return "dimension " + std::to_string(dim) + " has " + std::to_string(all) + " elements on all ranks instead of " +
             std::to_string(size);
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Operations of the model
//===----------------------------------------------------------------------===//

/// Results do not show the sizes of all operands: an operand that is needed whole is whole and no larger; a summed
/// dimension is complete, and elements behind its end do not count, in one operand of a product at least.
std::string PlacementRules::misfit(Operation *local, Operation *whole, const FactorRule &rule,
                                   ArrayRef<ValuePlacement> operands,
                                   llvm::function_ref<ArrayRef<StringAttr>(int64_t)> axesOf) const {
  if (whole->hasTrait<OpTrait::Elementwise>())
    return "";
  using Kind = FactorRule::Kind;
  for (auto [number, tensor] : llvm::enumerate(rule.operands)) {
    for (auto [dim, factors] : llvm::enumerate(tensor)) {
      int64_t all = graph::tensorType(local->getOperand(number)).getDimSize(dim);
      int64_t size = graph::tensorType(whole->getOperand(number)).getDimSize(dim);
      for (int64_t factor : factors)
        all *= ranksAlong(axesOf(factor));
      if (all == size)
        continue;
      std::string sizes = std::to_string(all) + " elements on all ranks instead of " + std::to_string(size);
      if (all < size)
        return "an operand has " + sizes;
      auto is = [&](Kind kind) {
        return llvm::any_of(factors, [&](int64_t factor) { return rule.factors[factor].kind == kind; });
      };
      // A slice at the begin leaves out the elements behind the end.
      bool cutsEnd = isa<graph::SliceOp>(whole) && graph::tensorType(local->getResult(0)).getDimSize(dim) <= size;
      // Tokens that no probability is left for are never drawn.
      std::optional<double> behind = operands[number].paddingOf(dim);
      bool isNeverDrawn = isa<graph::SampleTokensOp>(whole) && behind && *behind <= kAbsentLogit;
      if ((is(Kind::Blocked) || is(Kind::Exchanged)) && !cutsEnd && !isNeverDrawn)
        return "it needs whole a dimension that has " + sizes;
      // Rows of a reshape stay rows only if they are outermost on both sides.
      if (isa<graph::ReshapeOp>(whole) && llvm::none_of(rule.results[0], [&](const auto &other) {
            return !other.empty() && other.front() == factors.front();
          }))
        return "it moves the padding behind the end of a dimension";
      if (!is(Kind::Reduction) || isa<graph::GatherOp>(whole)) // which finds no such rows
        continue;
      bool isSum = !isa<graph::ReduceOp>(whole) || cast<graph::ReduceOp>(whole).getKind() == graph::ReduceKind::Sum;
      if (!isSum || combinePadding(local, paddingAlong(rule, factors.front(), operands)) != 0.0)
        return "it combines the padding behind the end of a dimension with its elements";
    }
  }
  return "";
}

ValuePlacement PlacementRules::canonical(ValuePlacement placement) const {
  if (placement.isUniform)
    return placement;
  RankedTensorType whole = graph::tensorType(placement.whole);
  if (whole.getRank() == 0 || (!placement.flat && whole.getRank() != 1))
    return placement;
  if (!llvm::all_of(ArrayRef(placement.axes).drop_front(), [](const MeshAxes &axes) { return axes.empty(); }))
    return placement;
  // Where something lies between the blocks, they are not those of all elements.
  if (placement.tail && !placement.axes[0].empty())
    return placement;
  MeshAxes all = placement.axes[0];
  if (placement.flat)
    llvm::append_range(all, *placement.flat);
  placement.axes[0].clear();
  placement.flat = all;
  return placement;
}

/// The number behind the end of a dimension. Of operands of one size that are divided along the first one alone, it is
/// the number behind all elements, too.
static std::optional<double> behind(const ValuePlacement &operand, size_t dim) {
  if (dim > 0 || !operand.tail)
    return operand.paddingOf(dim);
  return std::isnan(*operand.tail) ? std::nullopt : operand.tail;
}

PlacedResults PlacementRules::applyFlat(Operation *local, Operation *whole, ArrayRef<ValuePlacement> operands) const {
  if (!whole->hasTrait<OpTrait::Elementwise>() || whole->getNumResults() != 1)
    return PlacedResults::none("it works on a flat shard and is not elementwise");
  const ValuePlacement *first = nullptr;
  for (auto [placement, operand] : llvm::zip(operands, local->getOperands())) {
    if (placement.isUniform)
      continue;
    if (first &&
        (canonical(placement).flat != canonical(*first).flat || canonical(placement).axes != canonical(*first).axes))
      return PlacedResults::none("its operands are divided differently: " + first->str() + ", and " + placement.str());
    if (!first || (placement.flat && placement.isDivided()))
      first = &placement;
  }
  ValuePlacement result = *first;
  result.whole = whole->getResult(0);
  result.repeated.clear();
  Summands summands = summandsOf(local, operands);
  if (!summands.why.empty())
    return PlacedResults::none(summands.why);
  result.partial.clear();
  for (StringAttr axis : summands.axes)
    if (!result.isEqualAlong(axis))
      return PlacedResults::none("a summand over " + axis.getValue() + " would be divided over it");
  result.partial = summands.axes;
  result.combine = summands.combine;
  auto known = [&](auto number) {
    SmallVector<std::optional<double>> numbers;
    for (const ValuePlacement &operand : operands)
      numbers.push_back(operand.isUniform ? std::nullopt : number(operand));
    return combinePadding(local, std::move(numbers));
  };
  result.padding.clear();
  for (size_t dim = 0; dim < result.axes.size(); ++dim)
    result.setPadding(dim, known([&](const ValuePlacement &operand) { return behind(operand, dim); }));
  if (result.tail)
    result.tail = known([](const ValuePlacement &operand) { return behind(operand, 0); }).value_or(std::nan(""));
  return {{result}, ""};
}

PlacedResults PlacementRules::apply(Operation *local, Operation *whole, ArrayRef<ValuePlacement> operands) const {
  bool isFlat = llvm::any_of(operands, [](const ValuePlacement &placement) { return placement.flat.has_value(); });
  if (isFlat)
    return applyFlat(local, whole, operands);
  auto factored = dyn_cast<graph::Factored>(whole);
  if (!factored)
    return PlacedResults::none("nothing says how it can be divided");
  FactorRule rule = factored.factorRule();
  FactorAxes factors(rule, *this);
  bool allUniform = !operands.empty();
  for (auto [number, placement] : llvm::enumerate(operands)) {
    if (placement.isUniform)
      continue;
    allUniform = false;
    if (rule.operands[number].empty())
      continue;
    if (std::string why = factors.take(rule.operands[number], placement); !why.empty())
      return PlacedResults::none("operand " + Twine(number) + ": " + why);
  }
  Summands summands = summandsOf(local, operands);
  if (!summands.why.empty())
    return PlacedResults::none(summands.why);
  PlacedResults placed;
  for (auto [number, tensor] : llvm::enumerate(rule.results)) {
    ValuePlacement result = ValuePlacement::replicated(whole->getResult(number));
    result.partial = summands.axes;
    result.combine = summands.combine;
    for (auto [dim, dimFactors] : llvm::enumerate(tensor)) {
      bool isOutermost = true;
      for (int64_t factor : dimFactors) {
        if (!factors.of(factor).empty() && !isOutermost)
          return PlacedResults::none("dimension " + Twine(dim) + " of its result would be divided within blocks");
        llvm::append_range(result.axes[dim], factors.of(factor));
        isOutermost &= rule.factors[factor].size == ranksAlong(factors.of(factor));
      }
    }
    for (auto [factor, info] : llvm::enumerate(rule.factors)) {
      const MeshAxes &axes = factors.of(factor);
      if (axes.empty())
        continue;
      if (info.kind == FactorRule::Kind::Blocked || info.kind == FactorRule::Kind::Exchanged)
        return PlacedResults::none("it needs a dimension whole that " + join(axes) + " divides");
      if (graph::hasFactor(tensor, factor))
        continue;
      if (!info.combine)
        return PlacedResults::none("no rule says how to combine its results of parts over " + join(axes));
      auto combine = *info.combine == graph::ReduceKind::Sum ? dist::ReduceKind::Sum : dist::ReduceKind::Max;
      if (!result.partial.empty() && result.combine != combine)
        return PlacedResults::none("its result would be a sum of maxima");
      result.combine = combine;
      llvm::append_range(result.partial, axes);
    }
    sortAxes(result.partial);
    if (std::adjacent_find(result.partial.begin(), result.partial.end()) != result.partial.end())
      return PlacedResults::none("it would sum twice over one axis");
    for (const MeshAxes &dim : result.axes)
      for (StringAttr axis : dim)
        if (llvm::is_contained(result.partial, axis))
          return PlacedResults::none("a summand over " + axis.getValue() + " would be divided over it");
    // Without an operand that has a factor, nothing of the result depends on it.
    if (isa<graph::BroadcastOp>(whole) || whole->hasTrait<OpTrait::Elementwise>())
      for (const auto &dimFactors : tensor)
        result.repeated.push_back(llvm::all_of(dimFactors, [&](int64_t factor) { return factors.isFree(factor); }));
    if (!llvm::is_contained(result.repeated, true))
      result.repeated.clear();
    for (auto [dim, dimFactors] : llvm::enumerate(tensor))
      if (!dimFactors.empty())
        result.setPadding(dim, combinePadding(local, paddingAlong(rule, dimFactors.front(), operands)));
    result.isUniform = allUniform && whole->hasTrait<OpTrait::Elementwise>();
    if (std::string why = mismatch(graph::tensorType(local->getResult(number)), result); !why.empty())
      return PlacedResults::none(why);
    placed.results.push_back(std::move(result));
  }
  auto axesOf = [&](int64_t factor) -> ArrayRef<StringAttr> { return factors.of(factor); };
  if (std::string why = misfit(local, whole, rule, operands, axesOf); !why.empty())
    return PlacedResults::none(why);
  return placed;
}

//===----------------------------------------------------------------------===//
// Operations that move elements
//===----------------------------------------------------------------------===//

/// The axes without `last` at their end; none where they do not end so.
static std::optional<MeshAxes> withoutLast(const MeshAxes &axes, const MeshAxes &last) {
  if (axes.size() < last.size() || ArrayRef<StringAttr>(axes).take_back(last.size()) != ArrayRef<StringAttr>(last))
    return std::nullopt;
  return MeshAxes(ArrayRef<StringAttr>(axes).drop_back(last.size()));
}

/// Takes `axes` out of those over which `placement` is a summand. Returns why that cannot be.
static std::string complete(ValuePlacement &placement, const MeshAxes &axes, dist::ReduceKind kind) {
  for (StringAttr axis : axes) {
    auto *found = llvm::find(placement.partial, axis);
    if (found == placement.partial.end())
      return (kind == dist::ReduceKind::Sum ? "it adds up over " : "it takes the maximum over ") +
             axis.getValue().str() + " a value that is no summand over it: " + placement.str();
    placement.partial.erase(found);
  }
  return placement.combine == kind ? "" : "it combines in another way than the value needs";
}

static std::string gather(ValuePlacement &placement, int64_t dim, const MeshAxes &axes) {
  MeshAxes &divided = placement.flat ? *placement.flat : placement.axes[dim];
  if (!placement.flat && placement.isRepeated(dim))
    return "";
  std::optional<MeshAxes> left = withoutLast(divided, axes);
  if (!left)
    return "it joins parts over " + join(axes) + ", but the value is: " + placement.str();
  divided = *left;
  return "";
}

static std::string divide(ValuePlacement &placement, int64_t dim, const MeshAxes &axes) {
  if (!placement.flat && placement.isRepeated(dim))
    return "";
  for (StringAttr axis : axes)
    if (!placement.isEqualAlong(axis))
      return "it divides over " + axis.getValue().str() + " a value that differs along it: " + placement.str();
  llvm::append_range(placement.flat ? *placement.flat : placement.axes[dim], axes);
  return "";
}

PlacedResults PlacementRules::move(Operation *local, const ValuePlacement &operand) const {
  ValuePlacement result = operand;
  std::string why;
  if (operand.isUniform) {
    // A part of equal elements is the same elements.
    if (isa<dist::SliceOp, dist::AllGatherOp, graph::ReshapeOp>(local))
      return {{result}, ""};
    if (!isa<dist::AllReduceOp>(local))
      return PlacedResults::none("it moves elements that are all equal");
  }
  llvm::TypeSwitch<Operation *>(local)
      .Case<dist::AllReduceOp>([&](auto op) { why = complete(result, meshAxes(op.getAxes(), mesh), op.getKind()); })
      .Case<dist::AllGatherOp>([&](auto op) { why = gather(result, op.getDim(), meshAxes(op.getAxes(), mesh)); })
      .Case<dist::ReduceScatterOp>([&](auto op) {
        why = complete(result, meshAxes(op.getAxes(), mesh), op.getKind());
        if (why.empty())
          why = divide(result, op.getDim(), meshAxes(op.getAxes(), mesh));
      })
      .Case<dist::SliceOp>([&](auto op) { why = divide(result, op.getDim(), meshAxes(op.getAxes(), mesh)); })
      .Case<dist::AllToAllOp>([&](auto op) {
        why = gather(result, op.getConcatDim(), meshAxes(op.getAxes(), mesh));
        if (why.empty())
          why = divide(result, op.getSplitDim(), meshAxes(op.getAxes(), mesh));
      })
      .Default([&](Operation *) { why = "no rule gives the placement of its result"; });
  if (why.empty())
    why = mismatch(graph::tensorType(local->getResult(0)), result);
  return why.empty() ? PlacedResults{{result}, ""} : PlacedResults::none(why);
}
