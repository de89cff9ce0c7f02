//===- Timelines.cpp - Order of the calls and messages of entries
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Placement/Timelines.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Stage/StageOps.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace bowline;

FailureOr<DenseMap<Operation *, Operation *>> bowline::pairMessages(ArrayRef<ModuleOp> roles) {
  DenseMap<Operation *, Operation *> sendOf;
  using Message = std::pair<Operation *, int64_t>; // and the microbatch
  llvm::StringMap<SmallVector<Message>> sent, received;
  for (auto [number, given] : llvm::enumerate(roles)) {
    ModuleOp role = given;
    for (auto entry : role.getOps<graph::EntryOp>())
      for (auto [position, microbatch] : entry.getCalls()) {
        auto name = cast<FlatSymbolRefAttr>(entry.getFunctions()[position]);
        auto function = role.lookupSymbol<graph::FuncOp>(name.getAttr());
        if (!function)
          continue;
        for (Operation &op : function.getBody().front())
          if (auto send = dyn_cast<stage::SendOp>(op))
            sent[(entry.getSymName() + " " + send.getChannel() + " " + Twine(number) + " " + Twine(send.getTo())).str()]
                .emplace_back(&op, microbatch);
          else if (auto receive = dyn_cast<stage::ReceiveOp>(op))
            received[(entry.getSymName() + " " + receive.getChannel() + " " + Twine(receive.getFrom()) + " " +
                      Twine(number))
                         .str()]
                .emplace_back(&op, microbatch);
      }
  }
  for (auto &[channel, receives] : received) {
    SmallVector<Message> &sends = sent[channel];
    for (auto [number, receive] : llvm::enumerate(receives)) {
      if (number >= sends.size())
        return receive.first->emitError("placement: nothing is sent to it");
      auto [send, microbatch] = sends[number];
      if (microbatch != receive.second)
        return receive.first->emitError("placement: it receives for microbatch ")
               << receive.second << " a value that was sent for microbatch " << microbatch;
      Operation *&known = sendOf[receive.first];
      if (known && known != send)
        return receive.first->emitError("placement: it receives messages of two kinds");
      known = send;
    }
  }
  for (auto &[channel, sends] : sent)
    if (size_t count = received[channel].size(); count < sends.size())
      return sends[count].first->emitError("placement: nobody receives it");
  return sendOf;
}

/// Along the calls of an entry, each slot of a stash is read for the microbatch that it was written for.
static LogicalResult checkStashes(ModuleOp role, graph::EntryOp entry) {
  DenseMap<Operation *, DenseMap<int64_t, int64_t>> written; // microbatches by slot
  for (auto [position, microbatch] : entry.getCalls()) {
    auto function = role.lookupSymbol<graph::FuncOp>(cast<FlatSymbolRefAttr>(entry.getFunctions()[position]).getAttr());
    for (Operation &op : function.getBody().front()) {
      auto variable = op.getAttrOfType<FlatSymbolRefAttr>("variable");
      auto stash = variable && isa<graph::ReadOp, graph::WriteOp>(op)
                       ? role.lookupSymbol<graph::StateOp>(variable.getAttr())
                       : graph::StateOp();
      if (!stash || !stash.isStash())
        continue;
      auto [slot, isNew] = written[stash].try_emplace(microbatch % stash.getSlots().value_or(1), -1);
      if (isa<graph::WriteOp>(op))
        slot->second = microbatch;
      else if (slot->second != microbatch)
        return op.emitError("placement: for microbatch ")
               << microbatch << " it reads a value that was stashed for "
               << (slot->second < 0 ? std::string("none") : "microbatch " + std::to_string(slot->second));
    }
  }
  return success();
}

/// The functions of the whole program in the order in which an entry calls them, and how often.
LogicalResult bowline::checkTimelines(ArrayRef<ModuleOp> roles, ModuleOp whole) {
  graph::FuncOp microbatch = graph::FuncOp::find(whole, graph::FunctionPart::Microbatch);
  for (ModuleOp role : roles)
    for (auto entry : role.getOps<graph::EntryOp>()) {
      auto other = whole.lookupSymbol<graph::EntryOp>(entry.getSymName());
      if (!other)
        return entry.emitError("placement: the whole program has no such entry");
      if (failed(checkStashes(role, entry)))
        return failure();
      // The first call of each function of the whole program, and the microbatches that it is called for.
      llvm::StringMap<std::pair<int64_t, SmallVector<int64_t>>> expected;
      for (auto [number, call] : llvm::enumerate(other.getCalls())) {
        StringRef name = cast<FlatSymbolRefAttr>(other.getFunctions()[call.first]).getValue();
        auto found = expected.try_emplace(name, static_cast<int64_t>(number), SmallVector<int64_t>()).first;
        found->second.second.push_back(call.second);
      }
      llvm::StringMap<SmallVector<int64_t>> called;
      int64_t last = 0;
      for (auto [position, number] : entry.getCalls()) {
        StringRef name = cast<FlatSymbolRefAttr>(entry.getFunctions()[position]).getValue();
        called[name].push_back(number);
        StringRef of = expected.contains(name) || !microbatch ? name : microbatch.getSymName();
        auto found = expected.find(of);
        if (found == expected.end() || found->second.first < last)
          return entry.emitError("placement: it calls '") << name << "' out of the order of the whole program";
        last = found->second.first;
      }
      for (auto function : role.getOps<graph::FuncOp>()) {
        StringRef name = function.getSymName();
        bool isOwn = whole.lookupSymbol<graph::FuncOp>(name) != nullptr;
        if (expected.contains(isOwn || !microbatch ? name : microbatch.getSymName()) && !called.contains(name))
          return function.emitError("placement: '") << entry.getSymName() << "' does not call it";
      }
      for (auto &[name, numbers] : called) {
        auto found = expected.find(expected.contains(name) ? name : microbatch.getSymName());
        llvm::sort(numbers);
        if (numbers != found->second.second)
          return entry.emitError("placement: it does not call '") << name << "' once for each microbatch";
      }
    }
  return success();
}
