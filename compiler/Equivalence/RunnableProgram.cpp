//===- RunnableProgram.cpp - A program of any phase, seen from outside
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Equivalence/RunnableProgram.h"
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

bool RunnableProgram::isLocal(ModuleOp module) {
  bool local = false;
  module.walk([&](graph::FuncOp function) {
    for (unsigned index = 0; index < function.getNumArguments(); ++index)
      local |= static_cast<bool>(function.getArgAttr(index, DistDialect::kGlobalShapeAttr));
    for (Operation &op : function.getBody().front())
      local |= isa<DistDialect>(op.getDialect()) && op.hasAttr("axes");
  });
  return local;
}

SmallVector<graph::FuncOp> RunnableProgram::functionsOf(graph::EntryOp entry) {
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
  if (sharding && RunnableProgram::isLocal(function->getParentOfType<ModuleOp>()))
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
    for (graph::FuncOp function : RunnableProgram::functionsOf(init))
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
