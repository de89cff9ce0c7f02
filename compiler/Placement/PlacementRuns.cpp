//===- PlacementRuns.cpp - The programs of all ranks beside the whole one
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Placement/PlacementChecker.h"
#include "compiler/Placement/Timelines.h"
#include "dialects/Dist/Layout.h"
#include "dialects/Stage/StageOps.h"

using namespace mlir;
using namespace bowline;

LogicalResult PlacementChecker::beginRuns() {
  graph::FuncOp microbatch = graph::FuncOp::find(*whole, graph::FunctionPart::Microbatch);
  for (auto [number, role] : llvm::enumerate(roles))
    for (auto function : role.getOps<graph::FuncOp>()) {
      auto other = (*whole).lookupSymbol<graph::FuncOp>(function.getSymName());
      if (!other)
        other = microbatch; // of which a pipeline has fragments
      if (!other)
        return function.emitError("placement: the whole program has no such function");
      runs.push_back({static_cast<int64_t>(number), function, other, function.getBody().front().begin(), 0, {}});
      for (BlockArgument argument : function.getArguments()) {
        std::string name = function.getArgName(argument.getArgNumber());
        for (BlockArgument wholeArgument : other.getArguments()) {
          if (other.getArgName(wholeArgument.getArgNumber()) != name)
            continue;
          ValuePlacement placement = ValuePlacement::replicated(wholeArgument);
          if (auto sharding = function.getArgAttrOfType<dist::ShardingAttr>(argument.getArgNumber(),
                                                                            dist::DistDialect::kShardingAttr))
            for (auto [axes, dim] : llvm::zip(placement.axes, sharding.getDims()))
              axes = meshAxes(dim.getAxes(), mesh);
          auto shape = function.getArgAttrOfType<DenseI64ArrayAttr>(argument.getArgNumber(),
                                                                    dist::DistDialect::kGlobalShapeAttr);
          if (shape && shape.asArrayRef() != graph::tensorType(wholeArgument).getShape())
            return function.emitError("placement: argument '")
                   << name << "': dist.global_shape differs from the shape in the whole program";
          if (std::string why = rules->mismatch(graph::tensorType(argument), placement); !why.empty())
            return function.emitError("placement: argument '") << name << "' is no part of the whole argument: " << why;
          add(argument, placement);
        }
      }
    }
  return success();
}

/// Variables equal those of the whole program: for files, for callers, and in the beginning.
LogicalResult PlacementChecker::checkDeclarations() {
  for (ModuleOp role : roles)
    for (auto variable : role.getOps<graph::Variable>()) {
      auto other = (*whole).lookupSymbol<graph::Variable>(variable.getVariableName());
      if (!other)
        continue;
      auto shape = variable->getAttrOfType<DenseI64ArrayAttr>(dist::DistDialect::kGlobalShapeAttr);
      auto view = other->getAttrOfType<DenseI64ArrayAttr>(dist::DistDialect::kViewAttr);
      auto given = other->getAttrOfType<DenseI64ArrayAttr>(dist::DistDialect::kGlobalShapeAttr);
      bool hasShape =
          !shape || shape == given || shape == view || shape.asArrayRef() == other.getTensorType().getShape();
      if (variable->getName() != other->getName() || variable.getFileKey() != other.getFileKey() ||
          variable.isPersistent() != other.isPersistent() || variable.getOwnerAttr() != other.getOwnerAttr() ||
          variable.getInit() != other.getInit() || !hasShape ||
          (variable.isPersistent() && variable.getFlags() != other.getFlags()))
        return variable->emitError("placement: '")
               << variable.getVariableName() << "' is declared otherwise in the whole program";
    }
  return success();
}

/// Fragments of one function of the whole program share no variables that one of them writes, but stashes: the
/// placement of a variable in that function holds at the function's beginning.
LogicalResult PlacementChecker::checkFragments() {
  std::map<std::tuple<int64_t, Operation *, std::string>, Operation *> writers;
  auto forEach = [&](auto visit) {
    for (Run &run : runs)
      for (Operation &op : run.local.getBody().front()) {
        auto variable = op.getAttrOfType<FlatSymbolRefAttr>("variable");
        if (!variable || !isa<graph::ReadOp, graph::WriteOp>(op))
          continue;
        auto state = dyn_cast<graph::StateOp>(SymbolTable::lookupSymbolIn(roles[run.role], variable.getValue()));
        if (state && state.isStash()) {
          if (isa<graph::WriteOp>(op) && !stashWritten.insert(nameIn(run.role, variable.getValue())).second)
            return LogicalResult(op.emitError("placement: it is written twice for a microbatch"));
          continue;
        }
        if (failed(visit(run, op, std::tuple(run.role, run.whole.getOperation(), variable.getValue().str()))))
          return LogicalResult(failure());
      }
    stashWritten.clear();
    return LogicalResult(success());
  };
  auto collect = [&](Run &run, Operation &op, auto key) -> LogicalResult {
    if (!isa<graph::WriteOp>(op))
      return success();
    Operation *&writer = writers[key];
    if (writer && writer != run.local)
      return op.emitError("placement: '")
             << std::get<2>(key) << "' is written in two fragments of '" << run.whole.getSymName() << "'";
    writer = run.local;
    return success();
  };
  auto compare = [&](Run &run, Operation &op, auto key) -> LogicalResult {
    auto found = writers.find(key);
    if (found == writers.end() || found->second == run.local)
      return success();
    return op.emitError("placement: '") << std::get<2>(key) << "' is read in one fragment of '"
                                        << run.whole.getSymName() << "' and written in another";
  };
  return failed(forEach(collect)) ? failure() : forEach(compare);
}

PlacementChecker::Step PlacementChecker::advance(Run &run) {
  Step last = Step::Waits;
  while (!run.isDone()) {
    Step step = visit(run, &*run.next);
    if (step != Step::Done)
      return step == Step::Failed ? step : last;
    ++run.next;
    last = Step::Done;
  }
  return last;
}

/// Every role writes its part of the variables that the whole program writes, and some role returns each result.
LogicalResult PlacementChecker::checkComplete() {
  for (auto function : (*whole).getOps<graph::FuncOp>()) {
    for (auto &[name, value] : whole.writesOf(function)) {
      bool isHeld = false;
      for (auto [number, role] : llvm::enumerate(roles)) {
        if (!role.lookupSymbol(name))
          continue;
        isHeld = true;
        if (!seen.count({function, nameIn(static_cast<int64_t>(number), name)}))
          return role.emitError("placement: '") << name << "' is not written in '" << function.getSymName() << "'";
      }
      if (!isHeld && !whole.isDefinedHere(name))
        return divided.emitError("placement: no rank has '") << name << "'";
    }
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (!seen.count({function, "result " + function.getResultName(i)}))
        return divided.emitError("placement: no rank returns '")
               << function.getResultName(i) << "' of '" << function.getSymName() << "'";
  }
  return success();
}

LogicalResult PlacementChecker::check(ModuleOp module) {
  divided = module;
  mesh = dist::MeshOp::of(module);
  rules.emplace(mesh);
  roles = llvm::to_vector(module.getOps<ModuleOp>());
  if (roles.empty())
    roles.push_back(module);
  total.roles = static_cast<int64_t>(roles.size());
  if (roles.size() > 1)
    roleAxis = stage::axisOf(module);
  for (ModuleOp role : roles)
    for (auto variable : role.getOps<graph::Variable>())
      whole.defineRounded(variable);
  auto pairs = pairMessages(roles);
  if (failed(pairs) || failed(checkTimelines(roles, *whole)) || failed(checkDeclarations()) || failed(beginRuns()) ||
      failed(checkFragments()))
    return failure();
  sendOf = std::move(*pairs);
  for (bool isMoving = true; isMoving;) {
    isMoving = false;
    for (Run &run : runs) {
      if (run.isDone())
        continue;
      Step step = advance(run);
      if (step == Step::Failed)
        return failure();
      isMoving |= step == Step::Done;
    }
  }
  for (Run &run : runs)
    if (!run.isDone())
      return run.next->emitError("placement: it waits for a value that nobody computes");
  return checkComplete();
}
