//===- PlacementChecker.cpp - Whether ranks compute parts of the whole program
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Placement/PlacementChecker.h"
#include "compiler/Placement/FlatShards.h"
#include "compiler/Placement/LocalForms.h"
#include "dialects/Dist/Layout.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace bowline;

//===----------------------------------------------------------------------===//
// Placements of values
//===----------------------------------------------------------------------===//

ArrayRef<ValuePlacement> PlacementChecker::lookup(Value value) const {
  auto found = placements.find(value);
  return found == placements.end() ? ArrayRef<ValuePlacement>() : ArrayRef<ValuePlacement>(found->second);
}

void PlacementChecker::add(Value value, ValuePlacement placement) {
  ValuePlacements &known = placements[value];
  total.values += known.empty();
  if (!llvm::is_contained(known, placement))
    known.push_back(std::move(placement));
}

/// The same, in the words of a tensor with one dimension.
static ValuePlacement unflattened(ValuePlacement placement) {
  bool areBlocks = placement.flat && (!placement.tail || placement.axes[0].empty());
  if (areBlocks && graph::tensorType(placement.whole).getRank() == 1) {
    if (placement.tail)
      placement.setPadding(0, std::isnan(*placement.tail) ? std::nullopt : placement.tail);
    placement.tail.reset();
    llvm::append_range(placement.axes[0], *placement.flat);
    placement.flat.reset();
  }
  return placement;
}

/// Whether two placements are the same in canonical form.
static bool areEqual(ValuePlacement a, const ValuePlacement &b, const PlacementRules &rules) {
  for (size_t dim = 0; dim < a.repeated.size(); ++dim)
    if (a.repeated[dim] && !b.isUniform)
      a.axes[dim] = b.axes[dim];
  a.repeated.clear();
  return rules.canonical(std::move(a)) == rules.canonical(b);
}

std::optional<ValuePlacement> PlacementChecker::asOperand(Value local, Value wholeOperand) {
  if (std::optional<double> number = splatOf(local);
      number && number == splatOf(wholeOperand) &&
      graph::tensorType(local).getElementType() == graph::tensorType(wholeOperand).getElementType()) {
    return ValuePlacement::uniform(wholeOperand);
  }
  for (const ValuePlacement &placement : lookup(local)) {
    if (placement.whole == wholeOperand)
      return placement;
    if (placement.isUniform && scalarOf(wholeOperand) == placement.whole)
      return placement;
  }
  return std::nullopt;
}

LogicalResult PlacementChecker::emit(Value value, Operation *user, const Twine &needs) {
  Problem problem = problems.lookup(value);
  Operation *op = problem.op ? problem.op : user;
  std::string why = problem.op ? problem.why : std::string("it is another value");
  InFlightDiagnostic error = op->emitError("placement: '") << op->getName() << "' of a rank is no part of an operation "
                                                           << "of the whole program: " << why;
  error.attachNote(user->getLoc()) << needs;
  return error;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Attributes that are for sizes, people or passes.
static bool isBesideMeaning(StringRef name) {
  return name.starts_with("dist.") || name.starts_with("stage.") || name == "in_range" || name == "offsets" ||
         name == "sizes" || name == "low" || name == "high";
}

static bool haveSameAttributes(Operation *a, Operation *b) {
  auto isIn = [](Operation *op, NamedAttribute attribute) {
    return isBesideMeaning(attribute.getName()) || op->getAttr(attribute.getName()) == attribute.getValue();
  };
  return llvm::all_of(a->getAttrs(), [&](NamedAttribute attribute) { return isIn(b, attribute); }) &&
         llvm::all_of(b->getAttrs(), [&](NamedAttribute attribute) { return isIn(a, attribute); });
}

/// Boxes are the same where they are not divided, and whole where they are.
static bool haveSameBoxes(Operation *local, Operation *whole, ArrayRef<MeshAxes> axes) {
  for (StringRef name : {"offsets", "sizes", "low", "high"}) {
    auto a = local->getAttrOfType<DenseI64ArrayAttr>(name), b = whole->getAttrOfType<DenseI64ArrayAttr>(name);
    if (!a || !b)
      continue;
    for (auto [dim, here, there] : llvm::enumerate(a.asArrayRef(), b.asArrayRef()))
      if (axes[dim].empty() ? here != there
                            : graph::tensorType(local->getOperand(0)).getDimSize(dim) !=
                                  graph::tensorType(local->getResult(0)).getDimSize(dim))
        return false;
  }
  return true;
}

void PlacementChecker::tryWhole(Operation *op, Operation *other, Problem &problem) {
  if (op->getNumOperands() != other->getNumOperands() || op->getNumResults() != other->getNumResults() ||
      !haveSameAttributes(op, other))
    return;
  SmallVector<ValuePlacement, 1> operands;
  for (auto [local, wholeOperand] : llvm::zip(op->getOperands(), other->getOperands())) {
    std::optional<ValuePlacement> placement = asOperand(local, wholeOperand);
    if (!placement)
      return;
    operands.push_back(std::move(*placement));
  }
  // A flat shard of a tensor with one dimension is a shard; operands are to agree on the word.
  if (!other->hasTrait<OpTrait::Elementwise>())
    for (ValuePlacement &placement : operands)
      placement = unflattened(placement);
  PlacedResults placed = rules->apply(op, other, operands);
  if (placed && !placed.results.empty() && !placed.results[0].isUniform && !placed.results[0].flat &&
      !haveSameBoxes(op, other, placed.results[0].axes))
    placed = PlacedResults::none("it takes another part of its operand");
  if (!placed) {
    if (problem.why.empty())
      problem = {op, placed.why};
    return;
  }
  for (auto [result, placement] : llvm::zip(op->getResults(), placed.results)) {
    add(result, placement);
  }
}

void PlacementChecker::placeGeneric(Run &run, Operation *op) {
  Problem problem;
  StringRef name = op->getName().getStringRef();
  llvm::SmallPtrSet<Operation *, 8> tried;
  auto attempt = [&](Operation *other) {
    if (other->getName() == op->getName() && other->getBlock() == &run.whole.getBody().front() &&
        tried.insert(other).second)
      tryWhole(op, other, problem);
  };
  bool hasPlaced = false;
  for (Value operand : op->getOperands())
    for (const ValuePlacement &placement : ValuePlacements(lookup(operand))) {
      hasPlaced = true;
      for (Operation *user : placement.whole.getUsers()) {
        attempt(user);
        if (placement.isUniform && isa<graph::BroadcastOp>(user))
          for (Operation *further : user->getUsers())
            attempt(further);
      }
      if (op->getNumResults() > 0 && !lookup(op->getResult(0)).empty())
        return;
    }
  if (!hasPlaced) {
    auto isKnown = [](Value operand) { return splatOf(operand).has_value(); };
    if (llvm::all_of(op->getOperands(), isKnown))
      for (Operation *other : whole.named(run.whole, name))
        attempt(other);
  }
  if (op->getNumResults() == 0 || !lookup(op->getResult(0)).empty())
    return;
  for (Value operand : op->getOperands())
    if (lookup(operand).empty() && !splatOf(operand) && problems.count(operand)) {
      problem = problems.lookup(operand);
      for (Value result : op->getResults())
        problems[result] = problem;
      return;
    }
  if (problem.why.empty())
    problem = {op, "no operation of it has these operands"};
  for (Value result : op->getResults())
    problems[result] = problem;
}

void PlacementChecker::placeMoved(Operation *op) {
  Value operand = op->getOperand(0), result = op->getResult(0);
  std::string why;
  for (const ValuePlacement &placement : ValuePlacements(lookup(operand))) {
    PlacedResults placed = rules->move(op, placement);
    if (placed)
      add(result, placed.results[0]);
    else if (why.empty())
      why = placed.why;
  }
  if (!lookup(result).empty())
    return;
  Problem problem = lookup(operand).empty() ? problems.lookup(operand) : Problem{op, why};
  if (!problem.op)
    problem = {op, "its operand is no value of the whole program"};
  problems[result] = problem;
}

void PlacementChecker::place(Run &run, Operation *op) {
  if (isa<dist::CoordinateOp>(op) || matchPattern(op, m_Constant()))
    return;
  if (isa<dist::AllReduceOp, dist::AllGatherOp, dist::ReduceScatterOp, dist::SliceOp, dist::AllToAllOp>(op))
    return placeMoved(op);
  if (isa<graph::RandomOp>(op)) {
    for (Operation *other : whole.named(run.whole, op->getName().getStringRef()))
      if (std::optional<ValuePlacement> placement = placeRandom(op, other, mesh);
          placement && rules->mismatch(graph::tensorType(op->getResult(0)), *placement).empty())
        add(op->getResult(0), *placement);
    if (lookup(op->getResult(0)).empty())
      problems[op->getResult(0)] = {op, "it draws other numbers"};
    return;
  }
  if (isa<graph::IotaOp>(op)) { // of any size: LocalForms counts the rest
    for (Operation *other : whole.named(run.whole, op->getName().getStringRef()))
      if (haveSameAttributes(op, other) &&
          graph::tensorType(op->getResult(0)).getRank() == graph::tensorType(other->getResult(0)).getRank() &&
          graph::tensorType(op->getResult(0)).getElementType() ==
              graph::tensorType(other->getResult(0)).getElementType())
        add(op->getResult(0), ValuePlacement::replicated(other->getResult(0)));
    return;
  }
  if (isa<graph::BroadcastOp>(op) && graph::tensorType(op->getOperand(0)).getRank() == 0) {
    Value scalar = op->getOperand(0), result = op->getResult(0);
    for (const ValuePlacement &placement : ValuePlacements(lookup(scalar))) {
      ValuePlacement uniform = ValuePlacement::uniform(placement.whole);
      uniform.partial = placement.partial;
      uniform.combine = placement.combine;
      add(result, uniform);
    }
    if (Problem problem = problems.lookup(scalar); problem.op)
      problems[result] = problem;
    return;
  }
  auto known = [&](Value value) { return lookup(value); };
  LocalForms forms(mesh, known);
  for (OpResult result : op->getResults())
    for (ValuePlacement &placement : forms.find(result))
      if (rules->mismatch(graph::tensorType(result), placement).empty())
        add(result, placement);
  if (op->getNumResults() > 0 && !lookup(op->getResult(0)).empty())
    return;
  if (isa<graph::ReshapeOp, graph::PadOp, graph::SliceOp, graph::ReduceOp>(op))
    for (const ValuePlacement &placement : placeFlat(op, lookup(op->getOperand(0)), *rules))
      add(op->getResult(0), placement);
  if (lookup(op->getResult(0)).empty() || isa<graph::ReshapeOp>(op))
    placeGeneric(run, op);
}

//===----------------------------------------------------------------------===//
// Variables, results and stages
//===----------------------------------------------------------------------===//

std::string PlacementChecker::nameIn(int64_t role, StringRef name) { return (Twine(role) + " " + name).str(); }

/// The placement of a whole tensor by a variable's layout. Fails if the layout does not divide the tensor.
static FailureOr<ValuePlacement> placementIn(Operation *variable, Value value, dist::MeshOp mesh) {
  FailureOr<dist::Layout> layout = dist::Layout::of(variable);
  if (failed(layout))
    return failure();
  ValuePlacement placement = ValuePlacement::replicated(value);
  if (layout->axes.size() != placement.axes.size() ||
      ArrayRef<int64_t>(layout->view) != graph::tensorType(value).getShape())
    return failure();
  for (auto [dim, from] : llvm::enumerate(layout->axes)) {
    placement.axes[dim] = meshAxes(from, mesh);
    placement.setPadding(dim, 0.0);
  }
  if (layout->isFlat()) {
    placement.flat = meshAxes(layout->flatAxes, mesh);
    if (layout->shard * mesh.getSize(layout->flatAxes) != llvm::product_of(layout->local))
      placement.tail = 0.0;
  }
  placement.partial = sortedAxes(meshAxes(layout->unreduced, mesh));
  return placement;
}

/// Whether a value of this type and placement has zeros behind the end of each dimension, and of all elements.
static bool hasZerosBehind(RankedTensorType type, const ValuePlacement &placement, const PlacementRules &rules) {
  RankedTensorType whole = graph::tensorType(placement.whole);
  for (auto [dim, axes] : llvm::enumerate(placement.axes)) {
    int64_t ranks = rules.ranksAlong(axes), size = whole.getDimSize(dim);
    int64_t all = placement.flat ? (size + ranks - 1) / ranks * ranks : type.getDimSize(dim) * ranks;
    if (all != size && placement.paddingOf(dim) != 0.0)
      return false;
  }
  return !placement.tail || placement.tail == 0.0;
}

PlacementChecker::Step PlacementChecker::visitRead(Run &run, graph::ReadOp read) {
  StringRef name = read.getVariable();
  if (Value written = run.written.lookup(name)) {
    for (const ValuePlacement &placement : ValuePlacements(lookup(written)))
      add(read.getResult(), placement);
    return Step::Done;
  }
  Operation *variable = SymbolTable::lookupSymbolIn(roles[run.role], name);
  if (auto state = dyn_cast<graph::StateOp>(variable); state && state.isStash()) {
    auto found = stashes.find(nameIn(run.role, name));
    if (found == stashes.end())
      return Step::Waits;
    for (const ValuePlacement &placement : found->second)
      add(read.getResult(), placement);
    return Step::Done;
  }
  Value value = whole.readIn(run.whole, name);
  FailureOr<ValuePlacement> placement =
      value ? placementIn(variable, value, mesh) : FailureOr<ValuePlacement>(failure());
  std::string why = succeeded(placement) ? rules->mismatch(graph::tensorType(read.getResult()), *placement) : "";
  if (succeeded(placement) && why.empty())
    add(read.getResult(), *placement);
  else if (!why.empty())
    problems[read.getResult()] = {read, why};
  else
    problems[read.getResult()] = {read, value ? "its layout is no division of the variable"
                                              : "the whole program does not read it here"};
  return Step::Done;
}

/// Equal numbers, of which each rank has a flat shard, with the zeros behind them.
static bool isSplatBeforeZeros(Value value, Value wanted, const ValuePlacement &layout) {
  auto slice = value.getDefiningOp<dist::SliceOp>();
  auto pad = slice ? slice.getInput().getDefiningOp<graph::PadOp>() : graph::PadOp();
  if (!pad || !layout.flat || layout.tail != 0.0 || !layout.partial.empty() || pad.getLow()[0] != 0)
    return false;
  std::optional<double> number = splatOf(pad.getOperand());
  int64_t block = graph::tensorType(wanted).getNumElements();
  bool isWhole = llvm::all_of(layout.axes, [](const MeshAxes &axes) { return axes.empty(); });
  return number && number == splatOf(wanted) && isWhole &&
         graph::tensorType(pad.getOperand()).getNumElements() == block &&
         meshAxes(slice.getAxes(), dist::MeshOp::of(slice)) == *layout.flat;
}

LogicalResult PlacementChecker::visitWrite(Run &run, graph::WriteOp write) {
  StringRef name = write.getVariable();
  Operation *variable = SymbolTable::lookupSymbolIn(roles[run.role], name);
  Value value = write.getValue();
  if (auto state = dyn_cast<graph::StateOp>(variable); state && state.isStash()) {
    stashes[nameIn(run.role, name)] = ValuePlacements(lookup(value));
    return success();
  }
  run.written[name] = value;
  Value wanted = whole.writtenIn(run.whole, name);
  if (!wanted)
    return write.emitError("placement: the whole program does not write '") << name << "' here";
  FailureOr<ValuePlacement> layout = placementIn(variable, wanted, mesh);
  if (failed(layout))
    return write.emitError("placement: the layout of '") << name << "' is no division of it";
  RankedTensorType type = graph::tensorType(value);
  std::optional<double> number = splatOf(value);
  ValuePlacement held = *layout;
  held.padding.clear();
  bool isPadded = held.tail || !hasZerosBehind(type, held, *rules);
  bool isPlaced = number && number == splatOf(wanted) && (number == 0.0 || (layout->partial.empty() && !isPadded));
  isPlaced |= isSplatBeforeZeros(value, wanted, *layout);
  std::string found = rules->mismatch(type, *layout);
  if (!found.empty())
    return write.emitError("placement: the type of '") << name << "' does not fit its layout: " << found;
  for (const ValuePlacement &placement : lookup(value)) {
    if (placement.isUniform) {
      isPlaced |= scalarOf(wanted) == placement.whole && placement.partial == layout->partial && !isPadded;
      continue;
    }
    if (placement.whole != wanted)
      continue;
    bool isRight = areEqual(placement, *layout, *rules);
    bool isClean = hasZerosBehind(type, placement, *rules);
    isPlaced |= isRight && isClean;
    found = isRight ? "padded with elements that may differ from 0" : placement.str();
  }
  if (!isPlaced) {
    std::string needs = "'" + name.str() + "' must be placed as " + layout->str();
    if (!found.empty()) {
      InFlightDiagnostic error = write.emitError("placement: the value written to '")
                                 << name << "' is placed as " << found;
      error.attachNote() << needs;
      return error;
    }
    return emit(value, write, "it is written to '" + name + "'");
  }
  ++total.written;
  seen.insert({run.whole, nameIn(run.role, name)});
  return success();
}

LogicalResult PlacementChecker::visitReturn(Run &run, graph::ReturnOp op) {
  Operation *wholeReturn = run.whole.getBody().front().getTerminator();
  for (auto [number, value] : llvm::enumerate(op.getOperands())) {
    std::string name = run.local.getResultName(number);
    Value wanted;
    for (unsigned i = 0; i < wholeReturn->getNumOperands(); ++i)
      if (run.whole.getResultName(i) == name)
        wanted = wholeReturn->getOperand(i);
    if (!wanted)
      return op.emitError("placement: the whole program does not return '") << name << "'";
    ValuePlacement target = ValuePlacement::replicated(wanted);
    if (auto sharding = run.local.getResultAttrOfType<dist::ShardingAttr>(number, dist::DistDialect::kShardingAttr)) {
      for (auto [axes, dim] : llvm::zip(target.axes, sharding.getDims()))
        axes = meshAxes(dim.getAxes(), mesh);
    }
    if (std::string why = rules->mismatch(graph::tensorType(value), target); !why.empty())
      return op.emitError("placement: result '") << name << "' is no part of the whole result: " << why;
    bool isPlaced = splatOf(value) && splatOf(value) == splatOf(wanted);
    for (const ValuePlacement &placement : lookup(value))
      isPlaced |= placement.isUniform ? scalarOf(wanted) == placement.whole && placement.partial.empty()
                                      : areEqual(placement, target, *rules);
    if (!isPlaced)
      return emit(value, op, "result '" + Twine(name) + "' must be placed as " + target.str());
    ++total.results;
    seen.insert({run.whole, "result " + name});
  }
  return success();
}

bool PlacementChecker::isAlongRoles(dist::AllReduceOp op) const {
  return roleAxis && roles.size() > 1 && op.getAxes().size() == 1 && op.getAxes()[0] == roleAxis;
}

/// All roles add up the parts of their stages: a value of one of them, or the summands of a sum over stages.
PlacementChecker::Step PlacementChecker::visitSumOfStages(Run &run, dist::AllReduceOp op) {
  std::string key = (run.local.getSymName() + " " + Twine(run.sums)).str();
  SmallVector<Value> &values = sumsOfStages[key];
  if (values.empty())
    values.resize(roles.size());
  values[run.role] = op.getInput();
  if (!llvm::all_of(values, [](Value value) { return value != nullptr; }))
    return Step::Waits;
  ++run.sums;
  ValuePlacements summands;
  Problem problem = {op, "the values that stages add up are no sum of the whole program"};
  // A rank with several stages adds up the values of these stages.
  for (SmallVector<Value> pending(values); !pending.empty();) {
    Value value = pending.pop_back_val();
    if (splatOf(value) == 0.0)
      continue;
    if (!lookup(value).empty()) {
      summands.push_back(lookup(value).front());
      continue;
    }
    auto sum = value.getDefiningOp<arith::AddFOp>();
    if (!sum) {
      if (Problem before = problems.lookup(value); before.op)
        problem = before;
      problems[op.getResult()] = problem;
      return Step::Done;
    }
    pending.push_back(sum.getLhs());
    pending.push_back(sum.getRhs());
  }
  bool areSame = llvm::all_of(summands, [&](const ValuePlacement &one) {
    return one.partial == summands[0].partial && one.isUniform == summands[0].isUniform && one.axes.empty();
  });
  problems[op.getResult()] = problem;
  if (summands.empty() || !areSame || op.getKind() != dist::ReduceKind::Sum)
    return Step::Done;
  if (summands.size() == 1)
    add(op.getResult(), summands[0]);
  for (Operation *user : summands[0].whole.getUsers()) {
    auto sum = dyn_cast<stage::SumOp>(user);
    if (!sum || sum.getInputs().size() != summands.size())
      continue;
    auto isInput = [&](Value input) {
      return llvm::count_if(summands, [&](const ValuePlacement &one) { return one.whole == input; }) == 1;
    };
    if (!llvm::all_of(sum.getInputs(), isInput))
      continue;
    ValuePlacement result = summands[0];
    result.whole = sum.getResult();
    add(op.getResult(), result);
  }
  return Step::Done;
}

PlacementChecker::Step PlacementChecker::visit(Run &run, Operation *op) {
  auto stepOf = [](LogicalResult result) { return succeeded(result) ? Step::Done : Step::Failed; };
  return llvm::TypeSwitch<Operation *, Step>(op)
      .Case<graph::ReadOp>([&](auto read) { return visitRead(run, read); })
      .Case<graph::WriteOp>([&](auto write) { return stepOf(visitWrite(run, write)); })
      .Case<graph::ReturnOp>([&](auto result) { return stepOf(visitReturn(run, result)); })
      .Case<stage::SendOp>([&](auto send) {
        visited[send] = true;
        return Step::Done;
      })
      .Case<stage::ReceiveOp>([&](auto receive) {
        Operation *send = sendOf.lookup(receive);
        if (!send) {
          receive.emitError("placement: nothing is sent to it");
          return Step::Failed;
        }
        if (!visited.lookup(send))
          return Step::Waits;
        if (receive.getResultTypes() != send->getOperandTypes()) {
          receive.emitError("placement: it receives other types than are sent");
          return Step::Failed;
        }
        for (auto [result, value] : llvm::zip(receive.getResults(), send->getOperands())) {
          for (const ValuePlacement &placement : ValuePlacements(lookup(value)))
            add(result, placement);
          if (Problem problem = problems.lookup(value); problem.op)
            problems[result] = problem;
        }
        return Step::Done;
      })
      .Default([&](Operation *other) {
        if (auto reduce = dyn_cast<dist::AllReduceOp>(other); reduce && isAlongRoles(reduce))
          return visitSumOfStages(run, reduce);
        place(run, other);
        return Step::Done;
      });
}
