//===- CreateProgram.cpp - The program of a module in any phase
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Equivalence/CreateProgram.h"
#include "compiler/Equivalence/PlanProgram.h"
#include "compiler/Interp/ConstantEvaluation.h"
#include "compiler/Interp/PipelinedInterpreter.h"
#include "dialects/Graph/GraphOps.h"
#include "passes/Analysis/Roles.h"
#include "passes/Strategy/Strategy.h"

using namespace mlir;
using namespace bowline;
using dist::DistDialect;
using graph::HostTensor;

/// Adds a mesh of one rank where there is none.
static void addMesh(ModuleOp module) {
  if (dist::MeshOp::of(module))
    return;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  dist::MeshOp::create(builder, module.getLoc(), "mesh", builder.getStrArrayAttr({"rank"}), ArrayRef<int64_t>{1});
}

/// Gives a module a mesh of one rank and removes shardings and reshards, which leave values of global tensors as they
/// are.
static void makeWhole(ModuleOp module) {
  MLIRContext *context = module.getContext();
  for (auto strategy : llvm::make_early_inc_range(module.getOps<dist::StrategyOp>()))
    strategy->erase();
  for (auto mesh : llvm::make_early_inc_range(module.getOps<dist::MeshOp>()))
    mesh->erase();
  addMesh(module);
  module.walk([&](Operation *op) {
    op->removeAttr(DistDialect::kShardingAttr);
    op->removeAttr(DistDialect::kShardingsAttr);
    if (auto function = dyn_cast<graph::FuncOp>(op))
      for (unsigned index = 0; index < function.getNumArguments(); ++index)
        function.removeArgAttr(index, StringAttr::get(context, DistDialect::kShardingAttr));
    if (auto reshard = dyn_cast<dist::ReshardOp>(op)) {
      reshard.getResult().replaceAllUsesWith(reshard.getOperand());
      reshard->erase();
    }
  });
}

/// The axis along which pipeline stages lie, as the strategy says; "pp" where there is none.
static std::string stageAxisOf(ModuleOp module) {
  if (dist::StrategyOp op = dist::StrategyOp::of(module))
    if (FailureOr<Strategy> strategy = Strategy::fromOp(op); succeeded(strategy) && !strategy->stageAxis.empty())
      return strategy->stageAxis;
  return "pp";
}

namespace {

class SingleProgram final : public RunnableProgram {
public:
  SingleProgram(OwningOpRef<ModuleOp> owned, StringRef fixedAxis, const graph::Arithmetic &arithmetic)
      : RunnableProgram(std::move(owned)), interpreter(*module, fixedAxis, arithmetic), symbols(*module) {
    addVariables(*module);
    addCallables(*module, /*functionsToo=*/true);
    totalWork = workOf(*module) * static_cast<double>(interpreter.getRankCount());
  }

  FailureOr<HostTensor> getVariable(StringRef name) override { return interpreter.getVariable(name); }
  LogicalResult setVariable(StringRef name, const HostTensor &value) override {
    return interpreter.setVariable(name, value);
  }

  FailureOr<SmallVector<HostTensor>> run(StringRef name, const Inputs &inputs) override {
    SmallVector<HostTensor> arguments;
    auto add = [&](graph::FuncOp function) -> LogicalResult {
      for (unsigned index = 0; index < function.getNumArguments(); ++index) {
        auto input = inputs.find(function.getArgName(index));
        if (input == inputs.end())
          return function.emitOpError("has an input '") << function.getArgName(index) << "' that was not there before";
        arguments.push_back(input->second);
      }
      return success();
    };
    if (auto entry = symbols.lookup<graph::EntryOp>(name)) {
      for (graph::FuncOp function : functionsOf(entry))
        if (failed(add(function)))
          return failure();
    } else if (auto function = symbols.lookup<graph::FuncOp>(name)) {
      interpreter.clearAccumulators();
      if (failed(add(function)))
        return failure();
    }
    return interpreter.run(name, arguments);
  }

private:
  LogicalResult runInit() override { return interpreter.initialize(); }

  DistributedInterpreter interpreter;
  SymbolTable symbols;
};

/// Roles, all of them together.
class RolesProgram final : public RunnableProgram {
public:
  RolesProgram(OwningOpRef<ModuleOp> owned, StringRef axis, const graph::Arithmetic &arithmetic)
      : RunnableProgram(std::move(owned)), interpreter(*module, axis, arithmetic) {
    for (auto role : module->getOps<ModuleOp>()) {
      addVariables(role);
      addCallables(role, /*functionsToo=*/false);
      totalWork += workOf(role) * static_cast<double>(RankGrid(dist::MeshOp::of(role), axis).count());
    }
  }

  FailureOr<HostTensor> getVariable(StringRef name) override { return interpreter.getVariable(name); }
  LogicalResult setVariable(StringRef name, const HostTensor &value) override {
    return interpreter.setVariable(name, value);
  }
  FailureOr<SmallVector<HostTensor>> run(StringRef name, const Inputs &inputs) override {
    return interpreter.run(name, inputs);
  }

private:
  LogicalResult runInit() override { return interpreter.initialize(); }

  PipelinedInterpreter interpreter;
};

} // namespace

FailureOr<std::unique_ptr<RunnableProgram>> bowline::createProgram(ModuleOp given, const KernelBodies &bodies,
                                                                   const graph::Arithmetic &arithmetic) {
  OwningOpRef<ModuleOp> module = given.clone();
  if (!module->getOps<plan::ProgramOp>().empty())
    nestProgram(*module);
  std::string axis = stageAxisOf(*module);
  if (!module->getOps<ModuleOp>().empty()) {
    addMesh(*module);
    if (PlanProgram::matches(*module))
      return PlanProgram::create(std::move(module), bodies, arithmetic);
    evaluateConstants(*module);
    return std::unique_ptr<RunnableProgram>(std::make_unique<RolesProgram>(std::move(module), axis, arithmetic));
  }
  bool local = RunnableProgram::isLocal(*module);
  if (!local)
    makeWhole(*module);
  evaluateConstants(*module);
  if (!dist::MeshOp::of(*module))
    return mlir::emitError(given.getLoc()) << "has collectives, but no dist.mesh: add one with all of their axes";
  return std::unique_ptr<RunnableProgram>(
      std::make_unique<SingleProgram>(std::move(module), local ? StringRef(axis) : StringRef(), arithmetic));
}
