//===- Interpreter.cpp - Reference execution of graph programs
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/Interpreter.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;

static HostTensor emptyTensor(Type type) { return HostTensor(cast<RankedTensorType>(type).getShape().vec()); }

static bool fits(const HostTensor &tensor, RankedTensorType type) {
  return ArrayRef<int64_t>(tensor.shape) == type.getShape() &&
         static_cast<int64_t>(tensor.data.size()) == type.getNumElements();
}

static std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text = "[";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(shape, os);
  os << "]";
  return text;
}

/// Whether the variable always has the value of another one, its owner.
static bool isMirror(Variable variable) { return variable.has(StateFlags::Mirror); }

/// The type of an argument of a function that an entry runs `repeat` times.
static RankedTensorType repeatedType(Type type, int64_t repeat) {
  auto tensor = cast<RankedTensorType>(type);
  if (repeat == 1)
    return tensor;
  SmallVector<int64_t> shape{repeat};
  llvm::append_range(shape, tensor.getShape());
  return RankedTensorType::get(shape, tensor.getElementType());
}

Interpreter::Interpreter(ModuleOp module, const graph::Arithmetic &arithmetic)
    : module(module), arithmetic(&arithmetic), symbols(module),
      kernels(std::make_shared<KernelInterpreter>(arithmetic)) {}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

/// Draws `value` as `graph.random` would, so that random values have one definition.
static LogicalResult drawNormal(Operation *variable, RankedTensorType type, NormalAttr normal, int64_t seed,
                                uint64_t stream, HostTensor &value) {
  OpBuilder builder(variable->getContext());
  OwningOpRef<RandomOp> random =
      RandomOp::create(builder, variable->getLoc(), type, normal.getStddevAttr(), builder.getI64IntegerAttr(seed),
                       builder.getI64IntegerAttr(static_cast<int64_t>(stream)));
  return random->interpret({}, value, graph::Arithmetic::reals());
}

LogicalResult Interpreter::initializeVariables(int64_t seed, const StreamOf &streamOf, bool runInit) {
  uint64_t position = 0;
  for (auto variable : module.getOps<Variable>()) {
    if (isMirror(variable))
      continue;
    StringRef name = variable.getVariableName();
    RankedTensorType type = variable.getTensorType();
    uint64_t stream = streamOf ? streamOf(name) : position;
    ++position;
    HostTensor value = emptyTensor(type);
    if (auto fill = dyn_cast<FillAttr>(variable.getInit()))
      llvm::fill(value.data, fill.getValue());
    else if (failed(drawNormal(variable, type, cast<NormalAttr>(variable.getInit()), seed, stream, value)))
      return failure();
    for (double &element : value.data)
      element = arithmetic->of(type.getElementType()).number(element);
    variables[name] = std::move(value);
  }
  for (auto variable : module.getOps<Variable>())
    if (isMirror(variable))
      if (const HostTensor *value = getVariable(variable.getOwnerAttr().getValue())) // else it is in another program
        variables[variable.getVariableName()] = HostTensor(*value);
  EntryOp init = runInit ? EntryOp::find(module, EntryKind::Init) : EntryOp();
  return init ? LogicalResult(run(init.getSymName(), {})) : success();
}

const HostTensor *Interpreter::getVariable(StringRef name) const {
  auto it = variables.find(name);
  return it == variables.end() ? nullptr : &it->second;
}

LogicalResult Interpreter::setVariable(StringRef name, HostTensor value) {
  auto variable = symbols.lookup<Variable>(name);
  if (!variable)
    return module.emitError("no graph.param or graph.state is named @") << name;
  if (!fits(value, variable.getTensorType()))
    return variable->emitOpError("cannot take a value of shape ") << shapeText(value.shape);
  variables[name] = std::move(value);
  return success();
}

//===----------------------------------------------------------------------===//
// Functions and entries
//===----------------------------------------------------------------------===//

FuncOp Interpreter::lookupFunction(StringRef name) { return symbols.lookup<FuncOp>(name); }

FailureOr<SmallVector<RankedTensorType>> Interpreter::argumentTypes(StringRef name) {
  SmallVector<RankedTensorType> types;
  auto addFunction = [&](FuncOp function, int64_t repeat) {
    for (Type type : function.getArgumentTypes())
      types.push_back(repeatedType(type, repeat));
  };
  if (FuncOp function = lookupFunction(name)) {
    addFunction(function, 1);
    return types;
  }
  if (auto entry = symbols.lookup<EntryOp>(name)) {
    for (auto [reference, repeat] :
         llvm::zip_equal(entry.getFunctions().getAsRange<FlatSymbolRefAttr>(), entry.getRepeat()))
      addFunction(lookupFunction(reference.getValue()), repeat);
    return types;
  }
  return module.emitError("no graph.func or graph.entry is named @") << name;
}

FailureOr<Interpreter::Tensors> Interpreter::run(StringRef name, ArrayRef<HostTensor> arguments) {
  auto types = argumentTypes(name);
  if (failed(types))
    return failure();
  Operation *callee = symbols.lookup(name);
  if (types->size() != arguments.size())
    return callee->emitOpError("takes ") << types->size() << " arguments but got " << arguments.size();
  for (auto [index, type, argument] : llvm::enumerate(*types, arguments))
    if (!fits(argument, type))
      return callee->emitOpError("argument ")
             << index << " has type " << type << " but the given value has shape " << shapeText(argument.shape);
  if (auto entry = dyn_cast<EntryOp>(callee)) {
    if (entry.getTimeline())
      return entry.emitOpError("is a part of a pipeline, and runs on all of its ranks together");
    return runEntry(entry, arguments);
  }
  return runBlock(cast<FuncOp>(callee).getBody().front(), arguments);
}

/// Slice `repetition` along the leading dimension.
static HostTensor sliceOf(const HostTensor &tensor, int64_t repetition) {
  HostTensor slice(std::vector<int64_t>(tensor.shape.begin() + 1, tensor.shape.end()));
  std::copy_n(tensor.data.begin() + repetition * slice.count(), slice.count(), slice.data.begin());
  return slice;
}

void Interpreter::clearAccumulators() {
  for (StateOp state : module.getOps<StateOp>()) {
    if (!state.isAccumulator())
      continue;
    HostTensor start = emptyTensor(state.getTensorType());
    llvm::fill(
        start.data,
        arithmetic->of(state.getTensorType().getElementType()).number(cast<FillAttr>(state.getInit()).getValue()));
    variables[state.getSymName()] = std::move(start);
  }
}

FailureOr<Interpreter::Tensors> Interpreter::runEntry(EntryOp entry, ArrayRef<HostTensor> arguments) {
  clearAccumulators();
  Tensors results;
  for (auto [reference, repeat] :
       llvm::zip_equal(entry.getFunctions().getAsRange<FlatSymbolRefAttr>(), entry.getRepeat())) {
    FuncOp function = lookupFunction(reference.getValue());
    ArrayRef<HostTensor> own = arguments.take_front(function.getNumArguments());
    arguments = arguments.drop_front(own.size());
    for (int64_t repetition = 0; repetition < repeat; ++repetition) {
      Tensors current;
      for (const HostTensor &argument : own)
        current.push_back(repeat == 1 ? argument : sliceOf(argument, repetition));
      FailureOr<Tensors> returned = runBlock(function.getBody().front(), current);
      if (failed(returned))
        return failure();
      results = std::move(*returned);
    }
  }
  return results;
}

FailureOr<Interpreter::Tensors> Interpreter::runBlock(Block &body, ArrayRef<HostTensor> arguments) {
  Environment environment;
  for (auto [parameter, argument] : llvm::zip_equal(body.getArguments(), arguments))
    environment[parameter] = argument;
  for (Operation &op : body.without_terminator())
    if (failed(execute(&op, environment)))
      return failure();
  Tensors results;
  for (Value value : body.getTerminator()->getOperands())
    results.push_back(environment.at(value));
  return results;
}

LogicalResult Interpreter::execute(Operation *op, Environment &environment) {
  if (auto read = dyn_cast<ReadOp>(op)) {
    const HostTensor *value = getVariable(read.getVariable());
    if (!value)
      return op->emitOpError("reads ") << read.getVariableAttr() << ", which has no value yet";
    environment[read.getResult()] = *value;
    return success();
  }
  if (auto write = dyn_cast<WriteOp>(op)) {
    variables[write.getVariable()] = environment.at(write.getValue());
    return success();
  }
  Tensors operands;
  for (Value operand : op->getOperands())
    operands.push_back(environment.at(operand));
  FailureOr<Tensors> results;
  if (auto call = dyn_cast<plan::CallOp>(op)) {
    auto kernel = symbols.lookup<plan::KernelOp>(call.getKernel());
    auto body = kernel.getBody() ? symbols.lookup<func::FuncOp>(*kernel.getBody()) : func::FuncOp();
    results = kernels->run(op, kernel, body, operands);
  } else {
    results = interpretOperation(op, operands, *arithmetic);
  }
  if (failed(results))
    return failure();
  for (auto [value, tensor] : llvm::zip_equal(op->getResults(), *results)) {
    tensor.shape = cast<RankedTensorType>(value.getType()).getShape().vec(); // a kernel may see its arguments otherwise
    environment[value] = std::move(tensor);
  }
  return success();
}
