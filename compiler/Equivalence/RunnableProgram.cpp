//===- RunnableProgram.cpp - A program of any phase, seen from outside
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Equivalence/RunnableProgram.h"
#include "compiler/Equivalence/PlanProgram.h"
#include "compiler/Interp/ConstantEvaluation.h"
#include "compiler/Interp/PipelinedInterpreter.h"
#include "dialects/Graph/GraphOpInterfaces.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Analysis/Roles.h"
#include "passes/Strategy/Strategy.h"

#include <set>

using namespace mlir;
using namespace bowline;
using dist::DistDialect;
using graph::HostTensor;

//===----------------------------------------------------------------------===//
// Contents of a module
//===----------------------------------------------------------------------===//

/// Whether the types in `module` are local ones, of the shards of one rank.
static bool isLocal(ModuleOp module) {
  bool local = false;
  module.walk([&](graph::FuncOp function) {
    for (unsigned index = 0; index < function.getNumArguments(); ++index)
      local |= static_cast<bool>(function.getArgAttr(index, DistDialect::kGlobalShapeAttr));
    for (Operation &op : function.getBody().front())
      local |= isa<DistDialect>(op.getDialect()) && op.hasAttr("axes");
  });
  return local;
}

static SmallVector<graph::FuncOp> functionsOf(graph::EntryOp entry) {
  SymbolTable symbols(entry->getParentOfType<ModuleOp>());
  SmallVector<graph::FuncOp> functions;
  for (auto reference : entry.getFunctions().getAsRange<FlatSymbolRefAttr>())
    functions.push_back(symbols.lookup<graph::FuncOp>(reference.getValue()));
  return functions;
}

/// The global shape of an argument, whether types are local or not.
static std::vector<int64_t> globalShape(graph::FuncOp function, unsigned index) {
  auto type = cast<RankedTensorType>(function.getArgumentTypes()[index]);
  if (auto shape = function.getArgAttrOfType<DenseI64ArrayAttr>(index, DistDialect::kGlobalShapeAttr))
    return shape.asArrayRef().vec();
  std::vector<int64_t> shape = type.getShape().vec();
  auto sharding = function.getArgAttrOfType<dist::ShardingAttr>(index, DistDialect::kShardingAttr);
  if (sharding && isLocal(function->getParentOfType<ModuleOp>()))
    for (auto [size, dim] : llvm::zip_equal(shape, sharding.getDims()))
      size *= dist::MeshOp::of(function).getSize(dim.getAxes());
  return shape;
}

/// Whether an operation takes negative elements of the argument as absent labels.
static bool isLabels(Value argument) {
  return llvm::any_of(argument.getUses(), [](OpOperand &use) {
    auto user = dyn_cast<graph::Interpretable>(use.getOwner());
    return user && user.takesAbsent(use.getOperandNumber());
  });
}

/// Adds the function's arguments that `inputs` does not have by name; `count` microbatches add a leading dimension.
static void addInputs(graph::FuncOp function, int64_t count, std::vector<RunnableProgram::Input> &inputs) {
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    RunnableProgram::Input input;
    input.name = function.getArgName(index);
    input.data = checkedDataOf(function.getArgument(index));
    auto known = llvm::find_if(inputs, [&](const auto &other) { return other.name == input.name; });
    if (known != inputs.end()) {
      known->data.restrict(input.data);
      continue;
    }
    input.shape = globalShape(function, index);
    input.microbatches = count;
    if (count > 1)
      input.shape.insert(input.shape.begin(), count);
    input.element = getElementTypeOrSelf(function.getArgumentTypes()[index]);
    if (auto limit = function.getArgAttrOfType<IntegerAttr>(index, graph::FuncOp::kLimitAttr))
      input.data.restrict({limit.getInt(), std::nullopt});
    input.isLabels = isLabels(function.getArgument(index));
    input.sequences = sequenceInputOf(function, input.name, [&](StringRef name) -> RankedTensorType {
      for (BlockArgument argument : function.getArguments())
        if (function.getArgName(argument.getArgNumber()) == name)
          return graph::tensorType(argument);
      return {};
    });
    inputs.push_back(std::move(input));
  }
}

static std::vector<std::string> resultsOf(graph::FuncOp function) {
  std::vector<std::string> names;
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    names.push_back(function.getResultName(index));
  return names;
}

RunnableProgram::~RunnableProgram() = default;

/// Names of the variables that the entry of kind init writes.
static std::set<std::string> initialisedBy(ModuleOp module) {
  std::set<std::string> names;
  if (auto init = graph::EntryOp::find(module, EntryKind::Init))
    for (graph::FuncOp function : functionsOf(init))
      function.walk([&](graph::WriteOp write) { names.insert(write.getVariable().str()); });
  return names;
}

void RunnableProgram::addVariables(ModuleOp of) {
  std::set<std::string> initialised = initialisedBy(of);
  for (auto declared : of.getOps<graph::Variable>()) {
    auto state = dyn_cast<graph::StateOp>(*declared);
    Variable variable;
    variable.name = declared.getVariableName().str();
    if ((state && state.isStash()) || findVariable(variable.name))
      continue;
    variable.flags = declared.getFlags();
    variable.isAccumulator = state && state.isAccumulator();
    variable.isInitialised = initialised.count(variable.name) > 0;
    RankedTensorType type = declared.getTensorType();
    variable.element = type.getElementType();
    FailureOr<dist::Layout> layout = dist::Layout::of(declared);
    ArrayRef<int64_t> shape = succeeded(layout) ? ArrayRef<int64_t>(layout->global) : type.getShape();
    variable.shape = shape.vec();
    if (auto fill = dyn_cast<graph::FillAttr>(declared.getInit()))
      variable.fill = fill.getValue();
    restrictBytes(variable);
    of.walk([&](graph::ReadOp read) {
      if (read.getVariable() == variable.name)
        variable.data.restrict(checkedDataOf(read.getResult()));
    });
    if (FlatSymbolRefAttr owner = declared.getOwnerAttr())
      (variable.has(StateFlags::Mirror) ? variable.mirrorOf : variable.of) = owner.getValue().str();
    allVariables.push_back(std::move(variable));
  }
}

void RunnableProgram::addCallables(ModuleOp of, bool functionsToo) {
  std::set<std::string> called, initialising;
  for (auto entry : of.getOps<graph::EntryOp>()) {
    SmallVector<graph::FuncOp> functions = functionsOf(entry);
    for (graph::FuncOp function : functions)
      (entry.getKind() == EntryKind::Init ? initialising : called).insert(function.getName().str());
    if (entry.getKind() == EntryKind::Init) {
      initialises = true;
      continue;
    }
    const Callable *known = findCallable(entry.getName());
    Callable callable =
        known ? *known : Callable{entry.getName().str(), true, false, {}, {}, resultsOf(functions.back())};
    for (auto [function, repeat] : llvm::zip_equal(functions, entry.getRepeat()))
      addInputs(function, entry.getMicrobatches().value_or(repeat), callable.inputs);
    if (known)
      const_cast<Callable &>(*known) = std::move(callable); // now with the inputs of this stage, too
    else
      allCallables.push_back(std::move(callable));
  }
  if (!functionsToo)
    return;
  for (auto function : of.getOps<graph::FuncOp>()) {
    std::string name = function.getName().str();
    if (initialising.count(name))
      continue;
    Callable callable{name, false, called.count(name) > 0, function.getPart(), {}, resultsOf(function)};
    addInputs(function, 1, callable.inputs);
    allCallables.push_back(std::move(callable));
  }
}

double RunnableProgram::workOf(ModuleOp of) const {
  auto workOfFunction = [](graph::FuncOp function) {
    double work = 0;
    function.walk([&](Operation *op) {
      if (auto cost = dyn_cast<graph::CostModel>(op))
        work += cost.flops();
      for (Type type : op->getResultTypes())
        if (auto tensor = dyn_cast<RankedTensorType>(type))
          work += static_cast<double>(tensor.getNumElements());
    });
    return work;
  };
  double work = 0;
  std::set<std::string> called;
  for (auto entry : of.getOps<graph::EntryOp>()) {
    SmallVector<graph::FuncOp> functions = functionsOf(entry);
    for (auto [function, microbatch] : entry.getCalls())
      work += workOfFunction(functions[function]);
    for (graph::FuncOp function : functions)
      called.insert(function.getName().str());
  }
  for (auto function : of.getOps<graph::FuncOp>())
    if (!called.count(function.getName().str()))
      work += workOfFunction(function);
  return work;
}

const RunnableProgram::Variable *RunnableProgram::findVariable(StringRef name) const {
  auto it = llvm::find_if(allVariables, [&](const Variable &variable) { return variable.name == name; });
  return it == allVariables.end() ? nullptr : &*it;
}

const RunnableProgram::Callable *RunnableProgram::findCallable(StringRef name) const {
  auto it = llvm::find_if(allCallables, [&](const Callable &callable) { return callable.name == name; });
  return it == allCallables.end() ? nullptr : &*it;
}

const RunnableProgram::Callable *RunnableProgram::findCallable(graph::FunctionPart part) const {
  auto it = llvm::find_if(allCallables, [&](const Callable &callable) { return callable.part == part; });
  return it == allCallables.end() ? nullptr : &*it;
}

//===----------------------------------------------------------------------===//
// One program, for one rank or for all
//===----------------------------------------------------------------------===//

LogicalResult RunnableProgram::initialize() {
  // An entry of kind init sets no weights in a program that only reads them.
  for (const Variable &variable : allVariables)
    if (failed(setVariable(variable.name, HostTensor(variable.shape))))
      return failure();
  return initialises ? runInit() : success();
}

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

FailureOr<std::unique_ptr<RunnableProgram>> RunnableProgram::create(ModuleOp given, const KernelBodies &bodies,
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
  bool local = isLocal(*module);
  if (!local)
    makeWhole(*module);
  evaluateConstants(*module);
  if (!dist::MeshOp::of(*module))
    return mlir::emitError(given.getLoc()) << "has collectives, but no dist.mesh: add one with all of their axes";
  return std::unique_ptr<RunnableProgram>(
      std::make_unique<SingleProgram>(std::move(module), local ? StringRef(axis) : StringRef(), arithmetic));
}
