//===- PlanInterpreter.cpp - Reference execution of plan programs
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/PlanInterpreter.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

#include <utility>

using namespace mlir;
using namespace bowline;
using graph::HostTensor;

static plan::BufferOp definition(Value buffer) { return buffer.getDefiningOp<plan::BufferOp>(); }

static bool outlivesEntries(plan::BufferKind kind) {
  return kind == plan::BufferKind::Parameter || kind == plan::BufferKind::State || kind == plan::BufferKind::Constant ||
         kind == plan::BufferKind::Input;
}

PlanInterpreter::PlanInterpreter(ModuleOp module, const KernelBodies &bodies, const graph::Arithmetic &arithmetic)
    : module(module), bodies(bodies), arithmetic(&arithmetic), kernels(arithmetic), grid(dist::MeshOp::of(module)) {
  StringAttr axis = stage::axisOf(module);
  for (auto nested : module.getOps<ModuleOp>()) {
    int64_t coordinate = static_cast<int64_t>(roles.size());
    roles.push_back(std::make_unique<PlanRole>(nested, grid, axis ? axis.getValue() : StringRef(), coordinate));
  }
  ranks.resize(grid.count());
  for (auto &role : roles)
    for (int64_t rank : role->ranks)
      ranks[rank] = {role.get(), PlanMemory(*role)};
}

LogicalResult PlanInterpreter::load() {
  for (auto &role : roles) {
    for (auto constant : role->module.getOps<plan::ConstantOp>()) {
      OpBuilder builder(constant.getContext());
      OwningOpRef<arith::ConstantOp> op =
          arith::ConstantOp::create(builder, constant.getLoc(), cast<TypedAttr>(constant.getValue()));
      auto value = interpretOperation(*op, {}, *arithmetic);
      if (failed(value))
        return failure();
      for (int64_t rank : role->ranks)
        ranks[rank].memory->write(constant.getBuffer(), 0, value->front());
    }
    for (auto coordinate : role->module.getOps<plan::CoordinateOp>()) {
      SmallVector<StringAttr> axes = llvm::to_vector(coordinate.getAxes().getAsRange<StringAttr>());
      for (int64_t rank : role->ranks) {
        HostTensor place(std::vector<int64_t>{});
        place.data[0] = static_cast<double>(grid.placeOf(rank, axes));
        ranks[rank].memory->write(coordinate.getBuffer(), 0, place);
      }
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Global tensors
//===----------------------------------------------------------------------===//

dist::Layout PlanInterpreter::layoutOf(plan::BufferOp buffer, const RankGrid &grid) {
  dist::Layout layout;
  ArrayRef<int64_t> shape = buffer.getTensorType().getShape();
  layout.global.assign(shape.begin(), shape.end());
  layout.view = layout.global;
  layout.axes.resize(shape.size());
  if (std::optional<plan::LayoutAttr> attr = buffer.getLayout()) {
    layout.global = llvm::to_vector(attr->getGlobalShape().asArrayRef());
    ArrayRef<int64_t> view = attr->getView().asArrayRef();
    layout.view = view.empty() ? layout.global : llvm::to_vector(view);
    layout.axes.assign(layout.view.size(), {});
    for (auto [axes, sharding] : llvm::zip(layout.axes, attr->getDimShardings().getAsRange<ArrayAttr>()))
      llvm::append_range(axes, sharding.getAsRange<StringAttr>());
    llvm::append_range(layout.flatAxes, attr->getFlatAxes().getAsRange<StringAttr>());
  }
  for (auto [size, axes] : llvm::zip_equal(layout.view, layout.axes)) {
    int64_t count = grid.sizeOf(axes), local = static_cast<int64_t>(llvm::divideCeil(size, count));
    layout.local.push_back(local);
    layout.padded.push_back(local * count);
  }
  layout.shard = layout.isFlat() ? buffer.getTensorType().getNumElements() : 0;
  return layout;
}

FailureOr<HostTensor> PlanInterpreter::join(PlanRole &role, plan::BufferOp buffer) {
  std::vector<HostTensor> parts;
  for (int64_t rank : role.ranks) {
    // A buffer with a slot per microbatch has the value of the last one.
    auto part = ranks[rank].memory->read(buffer, buffer, static_cast<int64_t>(buffer.getSlots()) - 1);
    if (failed(part))
      return failure();
    parts.push_back(std::move(*part));
  }
  auto heldBy = [&](int64_t rank) -> const HostTensor & { return parts[rank]; };
  return role.grid.join(layoutOf(buffer, role.grid), heldBy, buffer.getTensorType().getElementType(), *arithmetic,
                        [&] { return buffer.emitOpError("'") << buffer.getName() << "' "; });
}

void PlanInterpreter::divide(PlanRole &role, plan::BufferOp buffer, int64_t slot, const HostTensor &whole) {
  std::vector<HostTensor> parts = role.grid.divide(whole, layoutOf(buffer, role.grid));
  for (auto [rank, part] : llvm::zip_equal(role.ranks, parts))
    ranks[rank].memory->write(buffer, slot, part);
}

FailureOr<HostTensor> PlanInterpreter::getVariable(StringRef name) {
  std::optional<HostTensor> value;
  for (auto &role : roles) {
    plan::BufferOp buffer = role->findState(name);
    if (!buffer)
      continue;
    FailureOr<HostTensor> own = join(*role, buffer);
    if (failed(own))
      return failure();
    if (value && value->data != own->data)
      return role->module.emitError("'") << name << "' differs from that of another stage";
    value = std::move(*own);
  }
  if (!value)
    return module.emitError("no rank has a variable '") << name << "'";
  return std::move(*value);
}

/// Checks that a value that a caller gives to `buffer` has the shape of its global tensor.
static LogicalResult checkShape(const HostTensor &value, ArrayRef<int64_t> expected, plan::BufferOp buffer) {
  if (ArrayRef<int64_t>(value.shape) == expected)
    return success();
  InFlightDiagnostic error = buffer.emitOpError("'") << buffer.getName() << "' has the global shape [";
  llvm::interleaveComma(expected, error);
  error << "], but was given a value of shape [";
  llvm::interleaveComma(value.shape, error);
  return error << "]";
}

LogicalResult PlanInterpreter::setVariable(StringRef name, const HostTensor &value) {
  bool found = false;
  for (auto &role : roles)
    if (plan::BufferOp buffer = role->findState(name)) {
      if (failed(checkShape(value, layoutOf(buffer, role->grid).global, buffer)))
        return failure();
      divide(*role, buffer, 0, value);
      found = true;
    }
  return found ? success() : module.emitError("no rank has a variable '") << name << "'";
}

LogicalResult PlanInterpreter::setInputs(PlanRole &role, plan::EntryOp entry, const Inputs &inputs) {
  for (auto [name, value] : llvm::zip_equal(entry.getInputNames().getAsRange<StringAttr>(), entry.getInputs())) {
    auto input = inputs.find(name.getValue());
    if (input == inputs.end())
      return entry.emitOpError("was not given the input ") << name;
    plan::BufferOp buffer = definition(value);
    auto slots = static_cast<int64_t>(buffer.getSlots());
    SmallVector<int64_t> expected;
    if (slots > 1)
      expected.push_back(slots);
    llvm::append_range(expected, layoutOf(buffer, role.grid).global);
    if (failed(checkShape(input->second, expected, buffer)))
      return failure();
    for (int64_t slot = 0; slot < slots; ++slot) {
      HostTensor own = input->second;
      if (slots > 1) {
        own = partOf(own, 0, slot, slots);
        own.shape.erase(own.shape.begin());
      }
      divide(role, buffer, slot, own);
    }
  }
  return success();
}

FailureOr<PlanInterpreter::Tensors> PlanInterpreter::outputs(StringRef name) {
  std::optional<Tensors> first;
  for (auto &role : roles) {
    Tensors own;
    for (Value value : role->symbols.lookup<plan::EntryOp>(name).getOutputs()) {
      FailureOr<HostTensor> output = join(*role, definition(value));
      if (failed(output))
        return failure();
      own.push_back(std::move(*output));
    }
    if (!first)
      first = own;
    if (own.size() != first->size())
      return role->module.emitError("@") << name << " has other results than in the stage before";
    for (auto [index, a, b] : llvm::enumerate(*first, own))
      if (!sameValues(a, b))
        return role->module.emitError("@") << name << " returns another result " << index << " than the first stage";
  }
  return std::move(*first);
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

std::vector<PlanInterpreter::Command> PlanInterpreter::expand(plan::ProgramOp program) {
  auto segments = llvm::to_vector(program.getBody().front().getOps<plan::SegmentOp>());
  std::vector<Command> commands;
  ArrayRef<int64_t> timeline = program.getTimeline();
  for (size_t call = 0; call + 1 < timeline.size(); call += 2)
    for (Operation &op : segments[timeline[call]].getBody().front())
      if (!isa<plan::SignalOp, plan::WaitOp>(op))
        commands.push_back({&op, timeline[call + 1]});
  return commands;
}

plan::EntryOp PlanInterpreter::findEntry(EntryKind kind) const {
  for (auto &role : roles)
    for (auto entry : role->module.getOps<plan::EntryOp>())
      if (entry.getKind() == kind)
        return entry;
  return {};
}

FailureOr<PlanInterpreter::Tensors> PlanInterpreter::run(StringRef name, const Inputs &inputs) {
  plan::EntryOp prepare = findEntry(EntryKind::Prepare), init = findEntry(EntryKind::Init);
  bool isPrepared = !prepare || name == prepare.getSymName() || (init && name == init.getSymName());
  if (!isPrepared && failed(runEntry(prepare.getSymName(), {})))
    return failure();
  return runEntry(name, inputs);
}

FailureOr<PlanInterpreter::Tensors> PlanInterpreter::runEntry(StringRef name, const Inputs &inputs) {
  commands.clear();
  for (auto &role : roles) {
    auto entry = role->symbols.lookup<plan::EntryOp>(name);
    if (!entry)
      return role->module.emitError("no plan.entry is named @") << name;
    for (auto buffer : role->module.getOps<plan::BufferOp>())
      if (!outlivesEntries(buffer.getKind()))
        for (int64_t rank : role->ranks)
          ranks[rank].memory->forget(buffer);
    if (failed(setInputs(*role, entry, inputs)))
      return failure();
    commands[role.get()] = expand(role->symbols.lookup<plan::ProgramOp>(entry.getProgram()));
  }
  for (Rank &rank : ranks)
    rank.next = 0;
  auto isDone = [&](int64_t rank) { return !head(rank); };
  auto all = llvm::seq<int64_t>(0, grid.count());
  while (!llvm::all_of(all, isDone)) {
    bool moved = false;
    for (int64_t rank : all)
      while (head(rank)) {
        FailureOr<bool> stepped = step(rank);
        if (failed(stepped))
          return failure();
        if (!*stepped)
          break;
        moved = true;
      }
    if (!moved)
      return reportDeadlock();
  }
  return outputs(name);
}

const PlanInterpreter::Command *PlanInterpreter::head(int64_t rank) const {
  const std::vector<Command> &own = commands.at(ranks[rank].role);
  return ranks[rank].next < own.size() ? &own[ranks[rank].next] : nullptr;
}

LogicalResult PlanInterpreter::reportDeadlock() {
  InFlightDiagnostic diagnostic = module.emitError("all ranks wait for each other");
  for (int64_t rank = 0; rank < grid.count(); ++rank)
    if (const Command *command = head(rank))
      diagnostic << "; rank " << rank << " in " << command->op->getName() << " on @"
                 << command->op->getAttrOfType<FlatSymbolRefAttr>("communicator").getValue() << ", slot "
                 << command->slot;
  return diagnostic;
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

FailureOr<bool> PlanInterpreter::step(int64_t index) {
  Rank &rank = ranks[index];
  Command command = *head(index);
  if (auto collective = dyn_cast<plan::CollectiveOp>(command.op))
    return collect(index, collective);
  if (auto send = dyn_cast<plan::SendOp>(command.op))
    return transfer(index, send);
  if (isa<plan::ReceiveOp>(command.op))
    return false; // its sender moves both
  if (auto copy = dyn_cast<plan::CopyOp>(command.op)) {
    auto value = rank.memory->read(copy, copy.getSource(), command.slot);
    if (failed(value))
      return failure();
    rank.memory->write(copy.getDestination(), command.slot, *value);
  } else if (failed(launch(rank, cast<plan::LaunchOp>(command.op), command.slot))) {
    return failure();
  }
  ++rank.next;
  return true;
}

LogicalResult PlanInterpreter::launch(Rank &rank, plan::LaunchOp op, int64_t slot) {
  auto kernel = rank.role->symbols.lookup<plan::KernelOp>(op.getKernel());
  unsigned count = kernel.getNumArguments() - (kernel.hasScratch() ? 1 : 0);
  Tensors operands;
  SmallVector<Value> written;
  for (auto [index, buffer] : llvm::enumerate(op.getOperands().take_front(count))) {
    plan::Access access = kernel.getArgument(index).getAccess();
    if (access != plan::Access::Read)
      written.push_back(buffer);
    if (access == plan::Access::Write)
      continue;
    auto value = rank.memory->read(op, buffer, slot);
    if (failed(value))
      return failure();
    operands.push_back(std::move(*value));
  }
  FailureOr<Tensors> results = kernels.run(op, kernel, bodies.of(kernel), operands);
  if (failed(results))
    return failure();
  for (auto [buffer, value] : llvm::zip_equal(written, *results))
    rank.memory->write(buffer, slot, value);
  return success();
}

//===----------------------------------------------------------------------===//
// Communication
//===----------------------------------------------------------------------===//

SmallVector<StringAttr> PlanInterpreter::axesOf(const Rank &rank, StringRef communicator) const {
  auto op = rank.role->symbols.lookup<plan::CommunicatorOp>(communicator);
  return llvm::to_vector(op.getAxes().getAsRange<StringAttr>());
}

/// The destination of one member, from the sources of all.
static HostTensor exchange(plan::CollectiveOp op, ArrayRef<HostTensor> sources, int64_t place,
                           const graph::Arithmetic &numbers) {
  const collectives::Definition &definition = op.getDefinition();
  auto places = static_cast<int64_t>(sources.size()), count = sources.front().count() / definition.SourceParts(places);
  HostTensor result({count * definition.DestinationParts(places)});
  bool isFirst = true;
  for (auto [member, source] : llvm::enumerate(sources)) {
    collectives::Move move = definition.move(member, place, places, op.getParameter());
    if (!move.any)
      continue;
    auto from = ArrayRef(source.data).slice(move.source * count, count);
    auto to = MutableArrayRef(result.data).slice(move.destination * count, count);
    for (auto [value, own] : llvm::zip_equal(from, to)) {
      if (isFirst || !definition.reduces())
        own = value;
      else
        own =
            op.getParameter() == uint64_t(plan::Reduction::Sum) ? numbers.add(own, value) : numbers.maximum(own, value);
    }
    isFirst = false;
  }
  return result;
}

FailureOr<bool> PlanInterpreter::collect(int64_t rank, plan::CollectiveOp op) {
  SmallVector<int64_t> group = grid.groupOf(rank, axesOf(ranks[rank], op.getCommunicator()));
  SmallVector<plan::CollectiveOp> parts;
  for (int64_t member : group) {
    auto part = head(member) ? dyn_cast<plan::CollectiveOp>(head(member)->op) : plan::CollectiveOp();
    if (!part || part.getCommunicator() != op.getCommunicator())
      return false;
    if (part.getKind() != op.getKind() || part.getParameter() != op.getParameter() ||
        part.getSources().size() != op.getSources().size())
      return op.emitOpError("meets another operation on @") << op.getCommunicator();
    parts.push_back(part);
  }
  auto places = static_cast<int64_t>(group.size());
  std::vector<Tensors> results(group.size());
  for (unsigned piece = 0; piece < op.getSources().size(); ++piece) {
    Type element = definition(op.getSources()[piece]).getTensorType().getElementType();
    Tensors sources;
    for (auto [member, part] : llvm::zip_equal(group, parts)) {
      auto value = ranks[member].memory->read(part, part.getSources()[piece], head(member)->slot);
      if (failed(value))
        return failure();
      value->shape = {value->count()};
      if (!sources.empty() && value->shape != sources.front().shape)
        return part.emitOpError("gives piece ") << piece << " another size than others on @" << op.getCommunicator();
      sources.push_back(std::move(*value));
    }
    for (int64_t place = 0; place < places; ++place)
      results[place].push_back(exchange(op, sources, place, arithmetic->of(element)));
  }
  for (auto [member, part, own] : llvm::zip_equal(group, parts, results)) {
    for (auto [buffer, value] : llvm::zip_equal(part.getDestinations(), own))
      ranks[member].memory->write(buffer, head(member)->slot, value);
    ++ranks[member].next;
  }
  return true;
}

FailureOr<bool> PlanInterpreter::transfer(int64_t sender, plan::SendOp op) {
  SmallVector<StringAttr> axes = axesOf(ranks[sender], op.getCommunicator());
  int64_t receiver = grid.groupOf(sender, axes)[op.getPeer()];
  auto receive = head(receiver) ? dyn_cast<plan::ReceiveOp>(head(receiver)->op) : plan::ReceiveOp();
  if (!receive || receive.getCommunicator() != op.getCommunicator() ||
      static_cast<int64_t>(receive.getPeer()) != grid.placeOf(sender, axes))
    return false;
  if (receive.getBuffers().size() != op.getBuffers().size())
    return op.emitOpError("sends ") << op.getBuffers().size() << " buffers to a receive of "
                                    << receive.getBuffers().size();
  for (auto [from, to] : llvm::zip_equal(op.getBuffers(), receive.getBuffers())) {
    auto value = ranks[sender].memory->read(op, from, head(sender)->slot);
    if (failed(value))
      return failure();
    if (value->count() != definition(to).getTensorType().getNumElements())
      return op.emitOpError("sends a buffer of another size than its receiver expects");
    ranks[receiver].memory->write(to, head(receiver)->slot, *value);
  }
  ++ranks[sender].next;
  ++ranks[receiver].next;
  return true;
}
