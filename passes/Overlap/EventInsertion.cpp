//===- EventInsertion.cpp - Commands of several streams keep the order that they need
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Overlap/EventInsertion.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/Lifetimes.h"

#include "passes/Analysis/StreamClocks.h"

using namespace mlir;
using namespace bowline;

static constexpr llvm::StringLiteral kInsertEvents = "InsertEvents";

static int64_t streamOf(Operation *command) { return cast<plan::Command>(command).getStreamIndex(); }

void EventInsertion::run() {
  if (program.getStreams().size() == 1)
    return;
  findOrders();
  insertSignals();
  signalFirst();
}

void EventInsertion::addOrder(Operation *earlier, Operation *later, int64_t slots) {
  if (earlier && streamOf(earlier) != streamOf(later))
    orders.insert({{earlier, slots}, later});
}

void EventInsertion::findOrders() {
  DenseMap<Operation *, SmallVector<CommandUse>> uses;
  DenseMap<std::pair<Value, int64_t>, LastAccesses> last;
  Operation *lastCommunication = nullptr;
  walkTimeline(
      program, [](int64_t) {},
      [&](Operation *command, int64_t slot) {
        if (ordersCommunications && isa<plan::CollectiveOp, plan::SendOp, plan::ReceiveOp>(command)) {
          addOrder(lastCommunication, command, /*slots=*/1);
          lastCommunication = command;
        }
        auto [found, isNew] = uses.try_emplace(command);
        if (isNew)
          found->second = usesOf(command, symbols);
        for (const CommandUse &use : found->second) {
          auto slots = static_cast<int64_t>(use.buffer.getDefiningOp<plan::BufferOp>().getSlots());
          LastAccesses &accesses = last[{use.buffer, slot % slots}];
          addOrder(accesses.writer, command, slots);
          if (use.writes) {
            for (Operation *reader : accesses.readers)
              addOrder(reader, command, slots);
            accesses = {command, {}};
            continue;
          }
          auto same =
              llvm::find_if(accesses.readers, [&](Operation *reader) { return streamOf(reader) == streamOf(command); });
          if (same != accesses.readers.end())
            *same = command;
          else
            accesses.readers.push_back(command);
        }
      });
}

void EventInsertion::insertSignals() {
  int64_t events = eventCount(program);
  OpBuilder builder(program.getContext());
  for (auto &[source, later] : orders) {
    auto [earlier, slots] = source;
    auto [event, isNew] = eventOf.try_emplace(source, events);
    if (isNew) {
      builder.setInsertionPointAfter(earlier);
      plan::SignalOp::create(builder, earlier->getLoc(), events, slots, streamOf(earlier), kInsertEvents);
      events += slots;
    }
    builder.setInsertionPoint(later);
    plan::WaitOp::create(builder, later->getLoc(), event->second, slots, streamOf(later), kInsertEvents);
  }
}

/// A first call waits for commands of an earlier step, which are over: events begin as signalled.
void EventInsertion::signalFirst() {
  llvm::DenseSet<int64_t> signalled;
  llvm::MapVector<int64_t, Location> early;
  walkTimeline(
      program, [](int64_t) {},
      [&](Operation *command, int64_t slot) {
        if (auto signal = dyn_cast<plan::SignalOp>(command))
          signalled.insert(eventIn(signal, slot));
        else if (auto wait = dyn_cast<plan::WaitOp>(command); wait && !signalled.contains(eventIn(wait, slot)))
          early.insert({eventIn(wait, slot), wait.getLoc()});
      });
  if (early.empty())
    return;
  OpBuilder builder = OpBuilder::atBlockBegin(&program.getBody().front());
  auto begin = plan::SegmentOp::create(builder, program.getLoc(), "begin");
  builder.setInsertionPointToEnd(&begin.getBody().emplaceBlock());
  for (auto [event, loc] : early)
    plan::SignalOp::create(builder, loc, event, /*slots=*/1, /*stream=*/0, kInsertEvents);
  SmallVector<int64_t> timeline = {0, 0};
  for (auto [i, value] : llvm::enumerate(program.getTimeline()))
    timeline.push_back(i % 2 == 0 ? value + 1 : value);
  program.setTimeline(timeline);
}
