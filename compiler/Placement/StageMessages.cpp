//===- StageMessages.cpp - Which receive gets what a stage sends
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Placement/StageMessages.h"
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
               << receive.second << " what was sent of microbatch " << microbatch;
      Operation *&known = sendOf[receive.first];
      if (known && known != send)
        return receive.first->emitError("placement: it receives messages of two kinds");
      known = send;
    }
  }
  return sendOf;
}
