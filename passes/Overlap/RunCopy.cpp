//===- RunCopy.cpp - A copy of the commands of a segment in one run
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Overlap/RunCopy.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Analysis/Lifetimes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace bowline;

/// The buffers that begin anew in every run, and that no other segment of the program uses.
static llvm::SetVector<Value> ownBuffers(plan::SegmentOp segment, SymbolTable &symbols) {
  auto program = segment->getParentOfType<plan::ProgramOp>();
  auto staysInSegment = [&](Operation *user) {
    return user->getParentOfType<plan::ProgramOp>() != program || user->getParentOp() == segment;
  };
  llvm::SetVector<Value> own;
  llvm::DenseSet<Value> seen;
  for (Operation &command : segment.getBody().front()) {
    SmallVector<CommandUse> uses = usesOf(&command, symbols);
    for (const CommandUse &use : uses) {
      auto declared = use.buffer.getDefiningOp<plan::BufferOp>();
      bool holdsValues =
          declared.getKind() != plan::BufferKind::Temporary && declared.getKind() != plan::BufferKind::Scratch;
      bool isRead = llvm::any_of(uses, [&](const CommandUse &any) { return any.buffer == use.buffer && any.reads; });
      if (seen.insert(use.buffer).second && !holdsValues && !isRead && declared.getSlots() == 1 &&
          llvm::all_of(use.buffer.getUsers(), staysInSegment))
        own.insert(use.buffer);
    }
  }
  return own;
}

void bowline::copyRun(plan::SegmentOp segment, Block &into, SymbolTable &symbols) {
  OpBuilder builder(segment.getContext());
  IRMapping copies;
  for (Value buffer : ownBuffers(segment, symbols)) {
    builder.setInsertionPointAfterValue(buffer);
    copies.map(buffer, builder.clone(*buffer.getDefiningOp())->getResult(0));
  }
  builder.setInsertionPointToStart(&into);
  for (Operation &command : segment.getBody().front())
    builder.clone(command, copies);
}
