//===- PipelinedInterpreter.cpp - Reference execution of the programs of a pipeline
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/PipelinedInterpreter.h"
#include "dialects/Dist/DistOps.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;

PipelinedInterpreter::PipelinedInterpreter(ModuleOp module, StringRef axis, const graph::Arithmetic &arithmetic)
    : module(module), axis(axis.str()) {
  for (auto nested : module.getOps<ModuleOp>())
    ranks.push_back(std::make_unique<Rank>(Rank{nested, DistributedInterpreter(nested, axis, arithmetic), {}, {}}));
}

LogicalResult PipelinedInterpreter::initialize() {
  for (auto &rank : ranks)
    for (Interpreter &one : rank->interpreter.ranks)
      if (failed(one.initializeVariables(0, [](StringRef) { return 0; }, /*runInit=*/false)))
        return failure();
  // All ranks have the same entries.
  EntryOp init = ranks.empty() ? EntryOp() : EntryOp::find(ranks.front()->module, EntryKind::Init);
  if (!init)
    return module.emitError("has no entry of kind init, which would give each rank its shard of the initial values");
  return run(init.getSymName(), {});
}

FailureOr<HostTensor> PipelinedInterpreter::getVariable(StringRef name) {
  std::optional<HostTensor> value;
  for (auto &rank : ranks) {
    if (!rank->interpreter.symbols.lookup(name))
      continue;
    FailureOr<HostTensor> own = rank->interpreter.getVariable(name);
    if (failed(own))
      return failure();
    if (value && !sameValues(*value, *own))
      return module.emitError("@") << name << " of @" << rank->module.getSymName().value_or("")
                                   << " differs from that before it";
    value = std::move(*own);
  }
  if (!value)
    return module.emitError("no rank has a variable @") << name;
  return std::move(*value);
}

LogicalResult PipelinedInterpreter::setVariable(StringRef name, const HostTensor &value) {
  bool found = false;
  for (auto &rank : ranks) {
    if (!rank->interpreter.symbols.lookup(name))
      continue;
    if (failed(rank->interpreter.setVariable(name, value)))
      return failure();
    found = true;
  }
  return found ? success() : module.emitError("no rank has a variable @") << name;
}

FailureOr<PipelinedInterpreter::Tensors> PipelinedInterpreter::run(StringRef name, const Arguments &arguments) {
  messages.clear();
  meetings.assign(ranks.size(), {});
  for (auto &rank : ranks) {
    auto entry = rank->interpreter.symbols.lookup<EntryOp>(name);
    if (!entry)
      return rank->module.emitError("no graph.entry is named @") << name;
    if (failed(addTasks(*rank, entry, arguments)))
      return failure();
  }
  auto isDone = [](const std::unique_ptr<Rank> &rank) {
    return llvm::all_of(rank->tasks, [](const Task &task) { return task.done; });
  };
  while (!llvm::all_of(ranks, isDone)) {
    bool moved = false;
    for (size_t coordinate = 0; coordinate < ranks.size(); ++coordinate)
      if (failed(advance(static_cast<int64_t>(coordinate), moved)))
        return failure();
    if (!moved)
      return reportDeadlock();
  }
  return results(name);
}

FailureOr<PipelinedInterpreter::Tensors> PipelinedInterpreter::results(StringRef name) {
  std::optional<Tensors> first;
  for (auto &rank : ranks) {
    Task &last = rank->tasks.back();
    std::vector<Tensors> all;
    for (const Interpreter::Environment &environment : last.environments) {
      Tensors &own = all.emplace_back();
      for (Value value : last.function.getBody().front().getTerminator()->getOperands())
        own.push_back(environment.at(value));
    }
    if (failed(DistributedInterpreter::verifySame(rank->interpreter.symbols.lookup(name), all)))
      return failure();
    if (!first)
      first = all.front();
    if (all.front().size() != first->size())
      return rank->module.emitError("@") << name << " has other results than on the rank before";
    for (auto [index, a, b] : llvm::enumerate(*first, all.front()))
      if (!sameValues(a, b))
        return rank->module.emitError("@") << name << " returns another result " << index << " than the first rank";
  }
  return *first;
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

/// The slot in which a function keeps a variable for a microbatch; its number is -1 where the variable is no stash.
static std::pair<std::string, int64_t> slotOf(SymbolTable &symbols, StringRef variable, int64_t microbatch) {
  auto state = symbols.lookup<StateOp>(variable);
  bool isStash = state && state.isStash();
  return {variable.str(), isStash ? microbatch % static_cast<int64_t>(*state.getSlots()) : -1};
}

/// The channel of a function that only moves data; empty for all others.
static std::string queueOf(FuncOp function) {
  std::string channel;
  for (Operation &op : function.getBody().front().without_terminator())
    if (auto send = dyn_cast<stage::SendOp>(op))
      channel = send.getChannel().str();
    else if (auto receive = dyn_cast<stage::ReceiveOp>(op))
      channel = receive.getChannel().str();
    else if (!isa<ReadOp, WriteOp>(op))
      return {};
  return channel;
}

LogicalResult PipelinedInterpreter::addTasks(Rank &rank, EntryOp entry, const Arguments &arguments) {
  rank.tasks.clear();
  rank.stashes.clear();
  for (Interpreter &one : rank.interpreter.ranks)
    one.clearAccumulators();
  SymbolTable &symbols = rank.interpreter.symbols;
  auto names = llvm::to_vector(entry.getFunctions().getAsRange<FlatSymbolRefAttr>());
  for (auto [function, microbatch] : entry.getCalls()) {
    Task task;
    task.function = symbols.lookup<FuncOp>(names[function].getValue());
    task.microbatch = microbatch;
    task.queue = queueOf(task.function);
    int64_t count = entry.getMicrobatches().value_or(entry.getRepeat()[function]);
    Tensors own;
    for (unsigned index = 0; index < task.function.getNumArguments(); ++index) {
      auto argument = arguments.find(task.function.getArgName(index));
      if (argument == arguments.end())
        return entry.emitOpError("was not given the input '") << task.function.getArgName(index) << "'";
      own.push_back(DistributedInterpreter::sliceOf(argument->second, microbatch, count));
    }
    task.environments.resize(rank.interpreter.ranks.size());
    for (auto [environment, pieces] : llvm::zip_equal(task.environments, rank.interpreter.divide(task.function, own)))
      for (auto [parameter, piece] : llvm::zip_equal(task.function.getBody().getArguments(), pieces))
        environment[parameter] = piece;
    task.function.walk([&](Operation *op) {
      if (auto read = dyn_cast<ReadOp>(op))
        task.reads.push_back(slotOf(symbols, read.getVariable(), microbatch));
      if (auto write = dyn_cast<WriteOp>(op))
        task.writes.push_back(slotOf(symbols, write.getVariable(), microbatch));
    });
    rank.tasks.push_back(std::move(task));
  }
  return success();
}

bool PipelinedInterpreter::mayRun(const Rank &rank, const Task &task) const {
  auto meet = [](const std::vector<Slot> &a, const std::vector<Slot> &b) {
    return llvm::any_of(a, [&](const Slot &slot) { return llvm::is_contained(b, slot); });
  };
  for (const Task &before : rank.tasks) {
    if (&before == &task)
      return true;
    if (before.done)
      continue;
    bool isQueued = !task.queue.empty() && before.queue == task.queue;
    if (isQueued || meet(before.writes, task.reads) || meet(before.writes, task.writes) ||
        meet(before.reads, task.writes))
      return false;
  }
  llvm_unreachable("a task of another rank");
}

LogicalResult PipelinedInterpreter::advance(int64_t coordinate, bool &moved) {
  Rank &rank = *ranks[coordinate];
  for (Task &task : rank.tasks) {
    if (task.done)
      continue;
    if (mayRun(rank, task) && failed(advance(coordinate, task, moved)))
      return failure();
    if (!task.done && task.queue.empty())
      break; // commands that follow are taken when it has run
  }
  return success();
}

LogicalResult PipelinedInterpreter::advance(int64_t coordinate, Task &task, bool &moved) {
  Block &body = task.function.getBody().front();
  if (!task.next)
    task.next = &body.front();
  for (; task.next != body.getTerminator(); task.next = task.next->getNextNode()) {
    FailureOr<bool> ran = execute(coordinate, task, moved);
    if (failed(ran))
      return failure();
    if (!*ran)
      return success();
    moved = true;
    task.posted = false;
  }
  task.done = moved = true;
  return success();
}

LogicalResult PipelinedInterpreter::reportDeadlock() {
  InFlightDiagnostic diagnostic = module.emitError("all ranks wait for each other");
  for (auto [coordinate, rank] : llvm::enumerate(ranks))
    for (Task &task : rank->tasks) {
      if (task.done)
        continue;
      diagnostic << "; rank " << coordinate << " of the pipeline in @" << task.function.getName() << " of microbatch "
                 << task.microbatch;
      if (auto send = dyn_cast_or_null<stage::SendOp>(task.next))
        diagnostic << " to send to rank " << send.getTo() << " on channel '" << send.getChannel() << "'";
      else if (auto receive = dyn_cast_or_null<stage::ReceiveOp>(task.next))
        diagnostic << " to receive from rank " << receive.getFrom() << " on channel '" << receive.getChannel() << "'";
      else if (task.next)
        diagnostic << " in " << task.next->getName();
      if (task.queue.empty())
        break;
    }
  return diagnostic;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

bool PipelinedInterpreter::isOverStages(Operation *op) const {
  auto axes = op->getName().getDialectNamespace() == "dist" ? op->getAttrOfType<ArrayAttr>("axes") : ArrayAttr();
  return axes && llvm::is_contained(axes, StringAttr::get(op->getContext(), axis));
}

FailureOr<bool> PipelinedInterpreter::execute(int64_t coordinate, Task &task, bool &moved) {
  Rank &rank = *ranks[coordinate];
  Operation *op = task.next;
  if (auto message = dyn_cast<stage::SendOp>(op))
    return send(coordinate, task, message, moved);
  if (auto message = dyn_cast<stage::ReceiveOp>(op))
    return receive(coordinate, task, message);
  if (isOverStages(op))
    return meet(coordinate, task, moved);
  SymbolTable &symbols = rank.interpreter.symbols;
  if (auto read = dyn_cast<ReadOp>(op)) {
    Slot slot = slotOf(symbols, read.getVariable(), task.microbatch);
    if (slot.second >= 0) {
      auto stash = rank.stashes.find(slot);
      if (stash == rank.stashes.end())
        return op->emitOpError("reads slot ") << slot.second << " of " << read.getVariableAttr() << ", which is empty";
      for (auto [environment, value] : llvm::zip_equal(task.environments, stash->second))
        environment[read.getResult()] = value;
      return true;
    }
  }
  if (auto write = dyn_cast<WriteOp>(op)) {
    Slot slot = slotOf(symbols, write.getVariable(), task.microbatch);
    if (slot.second >= 0) {
      Values &values = rank.stashes[slot];
      values.clear();
      for (const Interpreter::Environment &environment : task.environments)
        values.push_back(environment.at(write.getValue()));
      return true;
    }
  }
  if (failed(rank.interpreter.execute(op, task.environments)))
    return failure();
  return true;
}

bool PipelinedInterpreter::send(int64_t coordinate, Task &task, stage::SendOp op, bool &moved) {
  Link link{coordinate, static_cast<int64_t>(op.getTo()), op.getChannel().str()};
  if (task.posted)
    return !messages.count(link);
  if (messages.count(link))
    return false;
  std::vector<Values> message;
  for (Value input : op.getInputs()) {
    Values &values = message.emplace_back();
    for (const Interpreter::Environment &environment : task.environments)
      values.push_back(environment.at(input));
  }
  messages[link] = std::move(message);
  task.posted = moved = true;
  return false;
}

FailureOr<bool> PipelinedInterpreter::receive(int64_t coordinate, Task &task, stage::ReceiveOp op) {
  auto message = messages.find({static_cast<int64_t>(op.getFrom()), coordinate, op.getChannel().str()});
  if (message == messages.end())
    return false;
  if (message->second.size() != op.getNumResults())
    return op.emitOpError("takes ") << op.getNumResults() << " tensors but got " << message->second.size();
  for (auto [result, values] : llvm::zip_equal(op.getResults(), message->second))
    for (auto [environment, value] : llvm::zip_equal(task.environments, values)) {
      if (ArrayRef<int64_t>(value.shape) != cast<RankedTensorType>(result.getType()).getShape())
        return op.emitOpError("got a tensor of another shape than ") << result.getType();
      environment[result] = value;
    }
  messages.erase(message);
  return true;
}

FailureOr<bool> PipelinedInterpreter::meet(int64_t coordinate, Task &task, bool &moved) {
  Meeting &own = meetings[coordinate];
  if (!task.posted) {
    own = {task.next, {}, std::nullopt};
    for (Value operand : task.next->getOperands()) {
      Values &values = own.operands.emplace_back();
      for (const Interpreter::Environment &environment : task.environments)
        values.push_back(environment.at(operand));
    }
    task.posted = moved = true;
    if (llvm::all_of(meetings, [](const Meeting &meeting) { return meeting.op && !meeting.results; }) &&
        failed(combine()))
      return failure();
  }
  if (!own.results)
    return false;
  for (auto [result, values] : llvm::zip_equal(task.next->getResults(), *own.results))
    for (auto [environment, value] : llvm::zip_equal(task.environments, values))
      environment[result] = value;
  own = {};
  return true;
}

/// The reduction of an all-reduce, alone or of several tensors; none for other operations.
static std::optional<dist::ReduceKind> reductionOf(Operation *op) {
  auto collective = dyn_cast<dist::Collective>(op);
  if (!collective || collective.getForm().kind != collectives::Kind::kAllReduce)
    return std::nullopt;
  return static_cast<dist::ReduceKind>(collective.getForm().parameter);
}

LogicalResult PipelinedInterpreter::combine() {
  Operation *first = meetings.front().op;
  std::optional<dist::ReduceKind> kind = reductionOf(first);
  if (!kind)
    return first->emitOpError("has no meaning over pipeline stages; only all-reduces do");
  for (const Meeting &meeting : meetings)
    if (meeting.op->getName() != first->getName() || meeting.op->getOperandTypes() != first->getOperandTypes() ||
        meeting.op->getAttr("axes") != first->getAttr("axes") || reductionOf(meeting.op) != kind)
      return meeting.op->emitOpError("meets another collective on the first rank of the pipeline");
  SmallVector<StringAttr> others;
  for (auto name : first->getAttrOfType<ArrayAttr>("axes").getAsRange<StringAttr>())
    if (name.getValue() != axis)
      others.push_back(name);
  DistributedInterpreter &any = ranks.front()->interpreter;
  std::vector<Values> results;
  for (size_t index = 0; index < first->getNumOperands(); ++index) {
    Values &values = results.emplace_back();
    Type element = getElementTypeOrSelf(first->getOperand(index));
    for (size_t rank = 0; rank < any.ranks.size(); ++rank) {
      SmallVector<const HostTensor *> group;
      for (const Meeting &meeting : meetings)
        for (int64_t member : any.grid.groupOf(static_cast<int64_t>(rank), others))
          group.push_back(&meeting.operands[index][member]);
      values.push_back(any.combine(group, *kind, element));
    }
  }
  for (Meeting &meeting : meetings)
    meeting.results = results;
  return success();
}
