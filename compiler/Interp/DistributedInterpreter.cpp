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

DistributedInterpreter::DistributedInterpreter(ModuleOp module, StringRef fixedAxis, const Arithmetic &arithmetic)
    : module(module), arithmetic(&arithmetic), mesh(dist::MeshOp::of(module)), symbols(module) {
  int64_t count = 1;
  for (auto [name, size] : llvm::zip_equal(mesh.getAxisNames().getAsRange<StringAttr>(), mesh.getAxisSizes())) {
    sizes.push_back(name.getValue() == fixedAxis ? 1 : size);
    count *= sizes.back();
  }
  for (int64_t rank = 0; rank < count; ++rank)
    ranks.emplace_back(module, arithmetic);
}

//===----------------------------------------------------------------------===//
// The mesh
//===----------------------------------------------------------------------===//

/// Coordinates of a rank, by axis of the mesh; the last axis varies fastest.
static SmallVector<int64_t> coordinatesOf(ArrayRef<int64_t> sizes, int64_t rank) {
  SmallVector<int64_t> coordinates(sizes.size());
  for (size_t axis = coordinates.size(); axis-- > 0; rank /= sizes[axis])
    coordinates[axis] = rank % sizes[axis];
  return coordinates;
}

int64_t DistributedInterpreter::sizeOf(ArrayRef<StringAttr> axes) const {
  dist::MeshOp grid = mesh;
  int64_t size = 1;
  for (StringAttr axis : axes)
    size *= sizes[*grid.getAxis(axis)];
  return size;
}

int64_t DistributedInterpreter::placeOf(int64_t rank, ArrayRef<StringAttr> axes) const {
  dist::MeshOp grid = mesh;
  SmallVector<int64_t> coordinates = coordinatesOf(sizes, rank);
  int64_t place = 0;
  for (StringAttr axis : axes) {
    unsigned index = *grid.getAxis(axis);
    place = place * sizes[index] + coordinates[index];
  }
  return place;
}

SmallVector<int64_t> DistributedInterpreter::groupOf(int64_t rank, ArrayRef<StringAttr> axes) const {
  dist::MeshOp grid = mesh;
  SmallVector<int64_t> own = coordinatesOf(sizes, rank);
  SmallVector<int64_t> members(sizeOf(axes));
  for (int64_t other = 0; other < static_cast<int64_t>(ranks.size()); ++other) {
    SmallVector<int64_t> coordinates = coordinatesOf(sizes, other);
    bool member = true;
    for (auto [index, name] : llvm::enumerate(grid.getAxisNames().getAsRange<StringAttr>()))
      member &= llvm::is_contained(axes, name) || coordinates[index] == own[index];
    if (member)
      members[placeOf(other, axes)] = other;
  }
  return members;
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

/// Part `part` of `parts` along `dim`.
static HostTensor partOf(const HostTensor &whole, int64_t dim, int64_t part, int64_t parts) {
  std::vector<int64_t> shape = whole.shape;
  shape[dim] /= parts;
  HostTensor result(shape);
  std::vector<int64_t> strides = whole.strides();
  int64_t next = 0, first = part * shape[dim];
  forEachIndex(shape, [&](std::vector<int64_t> index) {
    index[dim] += first;
    result.data[next++] = whole.data[offsetOf(index, strides)];
  });
  return result;
}

/// Puts `part` at its place along `dim` of `whole`.
static void putPart(HostTensor &whole, const HostTensor &part, int64_t dim, int64_t place) {
  std::vector<int64_t> strides = whole.strides();
  int64_t next = 0, first = place * part.shape[dim];
  forEachIndex(part.shape, [&](std::vector<int64_t> index) {
    index[dim] += first;
    whole.data[offsetOf(index, strides)] = part.data[next++];
  });
}

HostTensor DistributedInterpreter::pieceOf(const HostTensor &whole, ArrayRef<Axes> axes, int64_t rank) const {
  HostTensor piece = whole;
  for (auto [dim, cut] : llvm::enumerate(axes))
    if (!cut.empty())
      piece = partOf(piece, static_cast<int64_t>(dim), placeOf(rank, cut), sizeOf(cut));
  return piece;
}

/// The elements of `from` in the box that both shapes have in common, zeros elsewhere.
static HostTensor resized(const HostTensor &from, ArrayRef<int64_t> shape) {
  HostTensor to(shape.vec());
  std::vector<int64_t> common, source = from.strides(), target = to.strides();
  for (auto [a, b] : llvm::zip_equal(from.shape, to.shape))
    common.push_back(std::min(a, b));
  forEachIndex(common, [&](const std::vector<int64_t> &index) {
    to.data[offsetOf(index, target)] = from.data[offsetOf(index, source)];
  });
  return to;
}

HostTensor DistributedInterpreter::shardOf(HostTensor piece, const dist::Layout &layout, int64_t rank) const {
  if (!layout.isFlat())
    return piece;
  int64_t parts = sizeOf(layout.flatAxes);
  piece.data.resize(layout.shard * parts, 0.0);
  piece.shape = {layout.shard * parts};
  return partOf(piece, 0, placeOf(rank, layout.flatAxes), parts);
}

FailureOr<HostTensor> DistributedInterpreter::joinShards(Operation *variable, const dist::Layout &layout,
                                                         int64_t rank) const {
  StringRef name = SymbolTable::getSymbolName(variable).getValue();
  if (!layout.isFlat())
    return *ranks[rank].getVariable(name);
  HostTensor piece(std::vector<int64_t>(layout.local.begin(), layout.local.end()));
  size_t next = 0;
  for (int64_t member : groupOf(rank, layout.flatAxes))
    for (double value : ranks[member].getVariable(name)->data)
      if (next < piece.data.size())
        piece.data[next++] = value;
      else if (value != 0)
        return variable->emitOpError("has ") << value << " behind its last element, where zeros must be";
  return piece;
}

FailureOr<HostTensor> DistributedInterpreter::join(Operation *variable, const dist::Layout &layout) const {
  HostTensor whole(std::vector<int64_t>(layout.padded.begin(), layout.padded.end()));
  std::vector<int64_t> strides = whole.strides();
  Type element = getElementTypeOrSelf(variable->getAttrOfType<TypeAttr>("type").getValue());
  // By place along the axes over which ranks hold summands.
  std::vector<HostTensor> parts(sizeOf(layout.unreduced), whole);
  std::vector<std::vector<bool>> known(parts.size(), std::vector<bool>(whole.data.size(), false));
  for (int64_t rank = 0; rank < static_cast<int64_t>(ranks.size()); ++rank) {
    FailureOr<HostTensor> piece = joinShards(variable, layout, rank);
    if (failed(piece))
      return failure();
    int64_t place = placeOf(rank, layout.unreduced), next = 0;
    bool equal = true;
    forEachIndex(piece->shape, [&](std::vector<int64_t> index) {
      for (auto [at, local, axes] : llvm::zip_equal(index, piece->shape, layout.axes))
        at += placeOf(rank, axes) * local;
      int64_t offset = offsetOf(index, strides);
      double value = piece->data[next++], &part = parts[place].data[offset];
      if (known[place][offset])
        equal &= part == value || (value != value && part != part);
      part = value;
      known[place][offset] = true;
    });
    if (!equal)
      return variable->emitOpError("has different values on ranks that should hold the same piece, such as rank ")
             << rank;
  }
  whole = std::move(parts.front());
  for (const HostTensor &part : ArrayRef<HostTensor>(parts).drop_front())
    for (auto [sum, value] : llvm::zip_equal(whole.data, part.data))
      sum = arithmetic->sum(sum, value, element);
  return whole;
}

FailureOr<HostTensor> DistributedInterpreter::getVariable(StringRef name) {
  Operation *variable = symbols.lookup(name);
  if (!variable || !ranks.front().getVariable(name))
    return module.emitError("variable @") << name << " does not exist or has no value yet";
  FailureOr<dist::Layout> layout = dist::Layout::of(variable);
  if (failed(layout))
    return failure();
  FailureOr<HostTensor> padded = join(variable, *layout);
  if (failed(padded))
    return failure();
  HostTensor whole = resized(*padded, layout->view);
  for (auto [value, expected] : llvm::zip_equal(padded->data, resized(whole, layout->padded).data))
    if (value != expected && (value == value || expected == expected))
      return variable->emitOpError("has ") << value << " in its padding, which must be zero";
  whole.shape.assign(layout->global.begin(), layout->global.end());
  return whole;
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
  HostTensor whole = value;
  whole.shape.assign(layout->view.begin(), layout->view.end());
  whole = resized(whole, layout->padded);
  for (int64_t rank = 0; rank < static_cast<int64_t>(ranks.size()); ++rank)
    if (failed(ranks[rank].setVariable(name, shardOf(pieceOf(whole, layout->axes, rank), *layout, rank))))
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
  if (!symbols.lookup("init"))
    return module.emitError("has no @init, which would give each rank its part of the initial values");
  return run("init", {});
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
    SmallVector<Axes> axes;
    if (auto sharding = function.getArgAttrOfType<dist::ShardingAttr>(index, DistDialect::kShardingAttr))
      for (dist::DimAttr dim : sharding.getDims())
        axes.push_back(llvm::to_vector(dim.getAxes()));
    for (auto [rank, list] : llvm::enumerate(pieces))
      list.push_back(pieceOf(argument, axes, static_cast<int64_t>(rank)));
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
    clearAccumulators();
  } else {
    return module.emitError("no graph.func or graph.entry is named @") << name;
  }
  std::vector<Tensors> results;
  for (auto [function, repeat] : calls) {
    if (arguments.size() < function.getNumArguments())
      return callee->emitOpError("got too few arguments");
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
  for (auto [rank, own] : llvm::enumerate(results))
    for (auto [index, value, first] : llvm::enumerate(own, results.front()))
      for (auto [a, b] : llvm::zip_equal(value.data, first.data))
        if (a != b && (a == a || b == b))
          return callee->emitOpError("returns as result ")
                 << index << " " << a << " on rank " << rank << " and " << b << " on rank 0";
  return results.front();
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
  for (const HostTensor *value : values.drop_front())
    for (auto [a, b] : llvm::zip_equal(result.data, value->data))
      a = kind == dist::ReduceKind::Sum ? arithmetic->sum(a, b, element) : arithmetic->maximum(a, b, element);
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

std::optional<HostTensor> DistributedInterpreter::collect(Operation *op, unsigned index, int64_t rank,
                                                          const Environments &environments) const {
  SmallVector<StringAttr> axes = llvm::to_vector(op->getAttrOfType<ArrayAttr>("axes").getAsRange<StringAttr>());
  int64_t size = sizeOf(axes), place = placeOf(rank, axes);
  Type element = getElementTypeOrSelf(op->getResult(index));
  SmallVector<const HostTensor *> group;
  if (op->getNumOperands() > 0)
    for (int64_t member : groupOf(rank, axes))
      group.push_back(&environments[member].find(op->getOperand(index))->second);
  auto join = [&](int64_t dim, function_ref<HostTensor(const HostTensor &)> part) {
    HostTensor result(cast<RankedTensorType>(op->getResult(index).getType()).getShape().vec());
    for (auto [member, value] : llvm::enumerate(group))
      putPart(result, part(*value), dim, static_cast<int64_t>(member));
    return result;
  };
  auto identity = [](const HostTensor &value) { return value; };
  using Result = std::optional<HostTensor>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](dist::AllReduceOp all) -> Result { return combine(group, all.getKind(), element); })
      .Case([&](dist::ReduceScatterOp scatter) -> Result {
        return partOf(combine(group, scatter.getKind(), element), scatter.getDim(), place, size);
      })
      .Case([&](dist::AllGatherOp gather) -> Result { return join(gather.getDim(), identity); })
      .Case([&](dist::BucketOp bucket) -> Result {
        if (bucket.getKind() == dist::CollectiveKind::AllGather)
          return join(0, identity);
        HostTensor all = combine(group, *bucket.getReduction(), element);
        return bucket.getKind() == dist::CollectiveKind::AllReduce ? all : partOf(all, 0, place, size);
      })
      .Case([&](dist::AllToAllOp move) -> Result {
        return join(move.getConcatDim(),
                    [&](const HostTensor &value) { return partOf(value, move.getSplitDim(), place, size); });
      })
      .Case([&](dist::SliceOp slice) -> Result { return partOf(*group[place], slice.getDim(), place, size); })
      .Case([&](dist::CoordinateOp) -> Result {
        HostTensor result(std::vector<int64_t>{});
        result.data[0] = static_cast<double>(place);
        return result;
      })
      .Default([](Operation *) { return std::nullopt; });
}
