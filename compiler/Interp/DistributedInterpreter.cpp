//===- DistributedInterpreter.cpp - Reference execution of the programs of all ranks
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/DistributedInterpreter.h"
#include "dialects/Graph/GraphOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;
using dist::DistDialect;

DistributedInterpreter::DistributedInterpreter(ModuleOp module, StringRef fixedAxis,
                                               const graph::Arithmetic &arithmetic)
    : module(module), arithmetic(&arithmetic), grid(dist::MeshOp::of(module), fixedAxis), symbols(module) {
  for (int64_t rank = 0; rank < grid.count(); ++rank)
    ranks.emplace_back(module, arithmetic);
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

FailureOr<HostTensor> DistributedInterpreter::getVariable(StringRef name) {
  Operation *variable = symbols.lookup(name);
  if (!variable || !ranks.front().getVariable(name))
    return module.emitError("variable @") << name << " does not exist or has no value yet";
  FailureOr<dist::Layout> layout = dist::Layout::of(variable);
  if (failed(layout))
    return failure();
  auto ofRank = [&](int64_t rank) -> const HostTensor & { return *ranks[rank].getVariable(name); };
  Type element = getElementTypeOrSelf(variable->getAttrOfType<TypeAttr>("type").getValue());
  return grid.join(*layout, ofRank, element, *arithmetic, [&] { return variable->emitOpError(); });
}

LogicalResult DistributedInterpreter::setVariable(StringRef name, const HostTensor &value) {
  Operation *variable = symbols.lookup(name);
  if (!variable)
    return module.emitError("no graph.param or graph.state is named @") << name;
  FailureOr<dist::Layout> layout = dist::Layout::of(variable);
  if (failed(layout))
    return failure();
  if (ArrayRef<int64_t>(value.shape) != ArrayRef<int64_t>(layout->global))
    return variable->emitOpError("got a value of another shape than that of the whole");
  std::vector<HostTensor> parts = grid.divide(value, *layout);
  for (auto [rank, part] : llvm::zip_equal(ranks, parts))
    if (failed(rank.setVariable(name, std::move(part))))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

LogicalResult DistributedInterpreter::initialize() {
  for (Interpreter &rank : ranks)
    if (failed(rank.initializeVariables(0, [](StringRef) { return 0; }, /*runInit=*/false)))
      return failure();
  EntryOp init = EntryOp::find(module, EntryKind::Init);
  if (!init)
    return module.emitError("has no entry of kind init, which would give each rank its shard of the initial values");
  return run(init.getSymName(), {});
}

void DistributedInterpreter::clearAccumulators() {
  for (Interpreter &rank : ranks)
    rank.clearAccumulators();
}

HostTensor DistributedInterpreter::sliceOf(const HostTensor &argument, int64_t repetition, int64_t repeat) {
  if (repeat == 1)
    return argument;
  HostTensor slice = partOf(argument, 0, repetition, repeat);
  slice.shape.erase(slice.shape.begin());
  return slice;
}

std::vector<DistributedInterpreter::Tensors> DistributedInterpreter::divide(FuncOp function,
                                                                            ArrayRef<HostTensor> arguments) const {
  std::vector<Tensors> pieces(ranks.size());
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    SmallVector<RankGrid::Axes> axes;
    if (auto sharding = function.getArgAttrOfType<dist::ShardingAttr>(index, DistDialect::kShardingAttr))
      for (dist::DimAttr dim : sharding.getDims())
        axes.push_back(llvm::to_vector(dim.getAxes()));
    for (auto [rank, list] : llvm::enumerate(pieces))
      list.push_back(grid.pieceOf(argument, axes, static_cast<int64_t>(rank)));
  }
  return pieces;
}

FailureOr<DistributedInterpreter::Tensors> DistributedInterpreter::run(StringRef name, ArrayRef<HostTensor> arguments) {
  SmallVector<std::pair<FuncOp, int64_t>> calls;
  Operation *callee = symbols.lookup(name);
  if (auto function = dyn_cast_or_null<FuncOp>(callee)) {
    calls.push_back({function, 1});
  } else if (auto entry = dyn_cast_or_null<EntryOp>(callee)) {
    if (entry.getTimeline())
      return entry.emitOpError("is a part of a pipeline, and runs on all of its ranks together");
    for (auto [reference, repeat] :
         llvm::zip_equal(entry.getFunctions().getAsRange<FlatSymbolRefAttr>(), entry.getRepeat()))
      calls.push_back({symbols.lookup<FuncOp>(reference.getValue()), repeat});
  } else {
    return module.emitError("no graph.func or graph.entry is named @") << name;
  }
  size_t expected = 0;
  for (auto [function, repeat] : calls)
    expected += function.getNumArguments();
  if (arguments.size() != expected)
    return callee->emitOpError("takes ") << expected << " arguments but got " << arguments.size();
  if (isa<EntryOp>(callee))
    clearAccumulators();
  std::vector<Tensors> results;
  for (auto [function, repeat] : calls) {
    ArrayRef<HostTensor> own = arguments.take_front(function.getNumArguments());
    arguments = arguments.drop_front(own.size());
    for (int64_t repetition = 0; repetition < repeat; ++repetition) {
      Tensors current;
      for (const HostTensor &argument : own)
        current.push_back(sliceOf(argument, repetition, repeat));
      auto returned = runFunction(function, divide(function, current));
      if (failed(returned))
        return failure();
      results = std::move(*returned);
    }
  }
  if (failed(verifySame(callee, results)))
    return failure();
  return results.front();
}

LogicalResult DistributedInterpreter::verifySame(Operation *callee, ArrayRef<Tensors> results) {
  for (auto [rank, own] : llvm::enumerate(results))
    for (auto [index, value, first] : llvm::enumerate(own, results.front()))
      for (auto [a, b] : llvm::zip_equal(value.data, first.data))
        if (a != b && (a == a || b == b))
          return callee->emitOpError("returns as result ")
                 << index << " " << a << " on rank " << rank << " and " << b << " on rank 0";
  return success();
}

FailureOr<std::vector<DistributedInterpreter::Tensors>>
DistributedInterpreter::runFunction(FuncOp function, const std::vector<Tensors> &arguments) {
  Block &body = function.getBody().front();
  Environments environments(ranks.size());
  for (auto [environment, own] : llvm::zip_equal(environments, arguments))
    for (auto [parameter, argument] : llvm::zip_equal(body.getArguments(), own))
      environment[parameter] = argument;
  for (Operation &op : body.without_terminator())
    if (failed(execute(&op, environments)))
      return failure();
  std::vector<Tensors> results(ranks.size());
  for (auto [environment, own] : llvm::zip_equal(environments, results))
    for (Value value : body.getTerminator()->getOperands())
      own.push_back(environment.at(value));
  return results;
}

LogicalResult DistributedInterpreter::execute(Operation *op, Environments &environments) {
  if (op->getName().getDialectNamespace() == "dist")
    return executeCollective(op, environments);
  for (auto [rank, environment] : llvm::zip_equal(ranks, environments))
    if (failed(rank.execute(op, environment)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

HostTensor DistributedInterpreter::combine(ArrayRef<const HostTensor *> values, dist::ReduceKind kind,
                                           Type element) const {
  HostTensor result = *values.front();
  const graph::Arithmetic &numbers = arithmetic->of(element);
  for (const HostTensor *value : values.drop_front())
    for (auto [a, b] : llvm::zip_equal(result.data, value->data))
      a = kind == dist::ReduceKind::Sum ? numbers.add(a, b) : numbers.maximum(a, b);
  return result;
}

LogicalResult DistributedInterpreter::executeCollective(Operation *op, Environments &environments) {
  auto attr = op->getAttrOfType<ArrayAttr>("axes");
  if (!attr)
    return op->emitOpError("has no meaning on local tensors");
  // Results become visible together: in a bucket none is an operand of another.
  std::vector<SmallVector<HostTensor>> results(ranks.size());
  for (auto [rank, own] : llvm::enumerate(results))
    for (unsigned index = 0; index < op->getNumResults(); ++index) {
      std::optional<HostTensor> result = collect(op, index, static_cast<int64_t>(rank), environments);
      if (!result)
        return op->emitOpError("has no meaning on local tensors");
      own.push_back(std::move(*result));
    }
  for (auto [environment, own] : llvm::zip_equal(environments, results))
    for (auto [result, value] : llvm::zip_equal(op->getResults(), own))
      environment[result] = std::move(value);
  return success();
}

HostTensor DistributedInterpreter::exchange(dist::Collective op, unsigned index, ArrayRef<const HostTensor *> group,
                                            int64_t place) const {
  dist::CollectiveForm form = op.getForm();
  const collectives::Definition &definition = form.definition();
  auto type = cast<RankedTensorType>(op->getResult(index).getType());
  auto size = static_cast<int64_t>(group.size());
  HostTensor result(type.getShape().vec());
  std::vector<HostTensor> combined;
  for (auto [member, source] : llvm::enumerate(group)) {
    collectives::Move move = definition.move(member, place, size, form.parameter);
    if (!move.any)
      continue;
    HostTensor part = definition.scatters ? partOf(*source, form.splitDim, move.source, size) : *source;
    if (definition.reduces())
      combined.push_back(std::move(part));
    else if (definition.gathers)
      putPart(result, part, form.joinDim, move.destination);
    else
      result = std::move(part);
  }
  if (!definition.reduces())
    return result;
  SmallVector<const HostTensor *> summands;
  for (const HostTensor &part : combined)
    summands.push_back(&part);
  return combine(summands, static_cast<dist::ReduceKind>(form.parameter), type.getElementType());
}

std::optional<HostTensor> DistributedInterpreter::collect(Operation *op, unsigned index, int64_t rank,
                                                          const Environments &environments) const {
  SmallVector<StringAttr> axes = llvm::to_vector(op->getAttrOfType<ArrayAttr>("axes").getAsRange<StringAttr>());
  int64_t size = grid.sizeOf(axes), place = grid.placeOf(rank, axes);
  SmallVector<const HostTensor *> group;
  if (op->getNumOperands() > 0)
    for (int64_t member : grid.groupOf(rank, axes))
      group.push_back(&environments[member].find(op->getOperand(index))->second);
  using Result = std::optional<HostTensor>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](dist::Collective collective) -> Result { return exchange(collective, index, group, place); })
      .Case([&](dist::SliceOp slice) -> Result { return partOf(*group[place], slice.getDim(), place, size); })
      .Case([&](dist::CoordinateOp) -> Result {
        HostTensor result(std::vector<int64_t>{});
        result.data[0] = static_cast<double>(place);
        return result;
      })
      .Default([](Operation *) { return std::nullopt; });
}
