//===- EarlyReductions.cpp - Reductions of a pipeline move to the call that completes their operands
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Overlap/EarlyReductions.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/StreamClocks.h"
#include "passes/Overlap/RunCopy.h"
#include "passes/Overlap/SegmentSchedule.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace bowline;

static plan::BufferOp declarationOf(Value buffer) { return buffer.getDefiningOp<plan::BufferOp>(); }

static bool isReduction(Operation *op) {
  auto collective = dyn_cast<plan::CollectiveOp>(op);
  return collective && collective.getDefinition().reduces();
}

int64_t EarlyReductions::run() {
  SmallVector<plan::SegmentOp> segments = segmentsOf(program);
  ArrayRef<int64_t> timeline = program.getTimeline();
  for (size_t i = 0; i < timeline.size(); i += 2)
    calls.push_back(segments[timeline[i]]);
  if (calls.empty())
    return 0;
  update = calls.pop_back_val();
  if (llvm::is_contained(calls, update) || !isFree(update))
    return 0;
  readCalls();
  readUpdate();
  choosePlaces();

  int64_t reductions = 0;
  std::map<int64_t, SmallVector<Operation *>> moved;
  for (const Command &command : commands) {
    if (command.place < 0)
      continue;
    moved[command.place].push_back(command.op);
    reductions += isReduction(command.op);
    if (auto collective = dyn_cast<plan::CollectiveOp>(command.op); collective && collective.getDefinition().in_place)
      reduceInPlace(collective, command.place);
  }
  for (auto &[call, list] : moved)
    moveTo(call, list);
  return reductions;
}

//===----------------------------------------------------------------------===//
// Dependences between commands
//===----------------------------------------------------------------------===//

void EarlyReductions::readCalls() {
  llvm::MapVector<Operation *, int64_t> lastCall;
  for (auto [call, segment] : llvm::enumerate(calls))
    lastCall[segment] = static_cast<int64_t>(call);
  for (auto [segment, call] : lastCall)
    for (Operation &command : cast<plan::SegmentOp>(segment).getBody().front())
      for (const CommandUse &use : usesOf(&command, symbols)) {
        Accesses &last = accesses[use.buffer];
        last.read = use.reads ? std::max(last.read, call) : last.read;
        last.write = use.writes ? std::max(last.write, call) : last.write;
      }
}

void EarlyReductions::readUpdate() {
  struct Last {
    std::optional<size_t> writer;
    SmallVector<size_t> readers;
  };
  DenseMap<Value, Last> lasts;
  for (Operation &op : update.getBody().front()) {
    size_t index = commands.size();
    Command command{&op, {}};
    for (const CommandUse &use : usesOf(&op, symbols)) {
      Last &last = lasts[use.buffer];
      if (last.writer && *last.writer != index)
        command.before.push_back(*last.writer);
      if (!use.writes) {
        last.readers.push_back(index);
        continue;
      }
      llvm::copy_if(last.readers, std::back_inserter(command.before), [&](size_t reader) { return reader != index; });
      last = {index, {}};
    }
    command.call = callOf(command);
    indexOf[&op] = index;
    commands.push_back(std::move(command));
  }
}

/// Copies and kernels may be on the way from results of calls to a reduction, and reductions may follow each other;
/// commands that compute with their results are the update. Slots say which call a command is in.
int64_t EarlyReductions::callOf(const Command &command) {
  bool computes = isa<plan::LaunchOp, plan::CopyOp>(command.op);
  if (!computes && (!isReduction(command.op) || isBetweenStages(command.op, symbols)))
    return -1;
  int64_t call = -1;
  for (const CommandUse &use : usesOf(command.op, symbols)) {
    if (declarationOf(use.buffer).getSlots() > 1)
      return -1;
    Accesses last = accesses.lookup(use.buffer);
    call = std::max({call, last.write, use.writes ? last.read : -1});
  }
  for (size_t earlier : command.before) {
    if (commands[earlier].call < 0 || (computes && isReduction(commands[earlier].op)))
      return -1;
    call = std::max(call, commands[earlier].call);
  }
  return call;
}

//===----------------------------------------------------------------------===//
// Commands that move, and their new places
//===----------------------------------------------------------------------===//

bool EarlyReductions::isOpen(int64_t call) { return call >= 0 && isFree(calls[call]); }

/// Sums of scalars, such as the number of tokens, are worth no copy of a segment; they come with others.
static bool reducesTensors(Operation *op) {
  return isReduction(op) && llvm::any_of(cast<plan::CollectiveOp>(op).getSources(), [](Value source) {
           return declarationOf(source).getTensorType().getNumElements() > 1;
         });
}

void EarlyReductions::choosePlaces() {
  llvm::DenseSet<int64_t> places;
  for (const Command &command : commands)
    if (isOpen(command.call) && reducesTensors(command.op))
      places.insert(command.call);
  for (size_t index = 0; index < commands.size(); ++index) {
    if (!isReduction(commands[index].op) || !places.contains(commands[index].call))
      continue;
    // The reduction moves together with the commands that it needs, but not before those of them that moved already.
    int64_t place = commands[index].call;
    llvm::SetVector<size_t> needed;
    needed.insert(index);
    for (size_t i = 0; i < needed.size(); ++i)
      for (size_t earlier : commands[needed[i]].before) {
        place = std::max(place, commands[earlier].place);
        if (commands[earlier].place < 0)
          needed.insert(earlier);
      }
    for (size_t i : needed)
      commands[i].place = place;
  }
}

//===----------------------------------------------------------------------===//
// Reductions in place
//===----------------------------------------------------------------------===//

/// Whether nothing but the reduction makes the result, and nothing needs the operand behind it.
bool EarlyReductions::reducesInPlace(plan::CollectiveOp allReduce, unsigned index, int64_t place) {
  Value source = allReduce.getSources()[index], result = allReduce.getDestinations()[index];
  auto isPlain = [&](Value buffer) {
    plan::BufferOp declared = declarationOf(buffer);
    return declared.getKind() == plan::BufferKind::Temporary && declared.getSlots() == 1 &&
           llvm::count(allReduce.getOperands(), buffer) == 1;
  };
  if (source.getType() != result.getType() || !isPlain(source) || !isPlain(result) || accesses.contains(result))
    return false;
  Accesses last = accesses.lookup(source);
  if (last.read > place || last.write > place)
    return false;
  auto isElsewhere = [&](Operation *user) { return user->getParentOp() != update; };
  auto comesBefore = [&](Operation *user) {
    const Command &command = commands[indexOf.lookup(user)];
    return command.place >= 0 && command.op->isBeforeInBlock(allReduce);
  };
  bool isFinal = llvm::all_of(
      source.getUsers(), [&](Operation *user) { return user == allReduce || isElsewhere(user) || comesBefore(user); });
  return isFinal && llvm::all_of(result.getUsers(), [&](Operation *user) {
           return isElsewhere(user) || user == allReduce || allReduce->isBeforeInBlock(user);
         });
}

void EarlyReductions::reduceInPlace(plan::CollectiveOp allReduce, int64_t place) {
  for (unsigned index = 0; index < allReduce.getSources().size(); ++index) {
    if (!reducesInPlace(allReduce, index, place))
      continue;
    Value source = allReduce.getSources()[index];
    allReduce.getDestinations()[index].replaceUsesWithIf(
        source, [&](OpOperand &use) { return use.getOwner()->getParentOp() == update; });
  }
}

//===----------------------------------------------------------------------===//
// Moving
//===----------------------------------------------------------------------===//

/// A copy in front of the update that the timeline calls in place of `call`.
plan::SegmentOp EarlyReductions::copyOf(int64_t call) {
  SmallVector<plan::SegmentOp> segments = segmentsOf(program);
  int64_t place = llvm::find(segments, update) - segments.begin();
  OpBuilder builder(update);
  auto copy = plan::SegmentOp::create(builder, calls[call].getLoc(), calls[call].getName());
  copyRun(calls[call], copy.getBody().emplaceBlock(), symbols);
  SmallVector<int64_t> timeline(program.getTimeline());
  for (size_t i = 0; i < timeline.size(); i += 2)
    timeline[i] += timeline[i] >= place;
  timeline[2 * call] = place;
  program.setTimeline(timeline);
  return copy;
}

void EarlyReductions::moveTo(int64_t call, ArrayRef<Operation *> moved) {
  bool isOnly = llvm::count(calls, calls[call]) == 1;
  plan::SegmentOp segment = isOnly ? calls[call] : copyOf(call);
  segment.setName((segment.getName() + "+reductions").str());
  insertWhenComplete(segment.getBody().front(), moved);
}

/// Each behind the last command that it has to come after, and else in the order that they have: scheduling keeps the
/// order of commands that compute, also of those that compute for a reduction.
void EarlyReductions::insertWhenComplete(Block &body, ArrayRef<Operation *> moved) {
  struct Last {
    Operation *write = nullptr, *use = nullptr;
  };
  DenseMap<Value, Last> lasts;
  auto addUses = [&](Operation *op) {
    for (const CommandUse &use : usesOf(op, symbols)) {
      auto advance = [&](Operation *&last) { last = !last || last->isBeforeInBlock(op) ? op : last; };
      advance(lasts[use.buffer].use);
      if (use.writes)
        advance(lasts[use.buffer].write);
    }
  };
  for (Operation &op : body)
    addUses(&op);
  llvm::SmallPtrSet<Operation *, 16> inserted;
  for (Operation *op : moved) {
    Operation *last = nullptr;
    for (const CommandUse &use : usesOf(op, symbols)) {
      Last of = lasts.lookup(use.buffer);
      Operation *earlier = use.writes ? of.use : of.write;
      last = earlier && (!last || last->isBeforeInBlock(earlier)) ? earlier : last;
    }
    Block::iterator place = last ? std::next(last->getIterator()) : body.begin();
    while (place != body.end() && inserted.contains(&*place))
      ++place;
    op->moveBefore(&body, place);
    inserted.insert(op);
    addUses(op);
  }
}
