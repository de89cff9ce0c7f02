//===- PrepareProgram.cpp - The program that runs once after parameters were set
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/PrepareProgram.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/Lifetimes.h"
#include "passes/Analysis/Roles.h"

using namespace mlir;
using namespace bowline;

PrepareProgram::PrepareProgram(ModuleOp module, SymbolTable &symbols) : module(module), symbols(symbols) {
  for (auto entry : module.getOps<plan::EntryOp>())
    if (entry.getKind() == EntryKind::Prepare)
      prepare = symbols.lookup<plan::ProgramOp>(entry.getProgram());
    else if (entry.getKind() == EntryKind::Init)
      init = symbols.lookup<plan::ProgramOp>(entry.getProgram());
  possible = isOnlyRole(module);
  for (auto program : module.getOps<plan::ProgramOp>())
    program.walk([&](plan::Command command) {
      for (const CommandUse &use : usesOf(command, symbols)) {
        if (!use.writes)
          continue;
        if (program == prepare)
          results.insert(use.buffer);
        else if (program != init && use.buffer.getDefiningOp<plan::BufferOp>().getKind() == plan::BufferKind::Parameter)
          possible = false;
      }
    });
}

bool PrepareProgram::isFixed(Value buffer) const {
  auto declared = buffer.getDefiningOp<plan::BufferOp>();
  // A result of external memory, which the caller owns, would be a second copy of it.
  if (!possible || declared.getSlots() != 1 || declared.getKind() == plan::BufferKind::Scratch ||
      declared.getSpace() == plan::MemorySpace::External)
    return false;
  return declared.getKind() == plan::BufferKind::Parameter || declared.getKind() == plan::BufferKind::Constant ||
         results.contains(buffer);
}

plan::SegmentOp PrepareProgram::segment() {
  if (!prepare) {
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    for (auto entry : module.getOps<plan::EntryOp>())
      builder.setInsertionPointAfter(entry);
    Location loc = builder.getUnknownLoc();
    constexpr llvm::StringLiteral name = "prepare";
    prepare = plan::ProgramOp::create(builder, loc, (name + "_program").str());
    symbols.insert(prepare, builder.getInsertionPoint());
    prepare.getBody().emplaceBlock();
    prepare.setTimeline({0, 0});
    auto entry = plan::EntryOp::create(builder, loc, EntryKind::Prepare, name, /*bucket=*/0, prepare.getSymName(),
                                       builder.getArrayAttr({}), ArrayRef<int64_t>(), ValueRange(),
                                       builder.getArrayAttr({}), ValueRange());
    symbols.insert(entry);
    OpBuilder body = OpBuilder::atBlockEnd(&prepare.getBody().front());
    plan::SegmentOp::create(body, loc, name).getBody().emplaceBlock();
  }
  return *prepare.getBody().front().getOps<plan::SegmentOp>().begin();
}

void PrepareProgram::take(plan::LaunchOp launch) {
  Block &block = segment().getBody().front();
  launch->moveBefore(&block, block.end());
  for (const CommandUse &use : usesOf(launch, symbols))
    if (use.writes)
      results.insert(use.buffer);
}

void PrepareProgram::keepResults() {
  for (Value buffer : results) {
    auto declared = buffer.getDefiningOp<plan::BufferOp>();
    if (declared.getKind() == plan::BufferKind::Scratch)
      continue;
    bool isUsed = llvm::any_of(buffer.getUsers(), [&](Operation *user) {
      return user->getParentOfType<plan::ProgramOp>() && user->getParentOfType<plan::ProgramOp>() != prepare;
    });
    declared.setKind(isUsed ? plan::BufferKind::State : plan::BufferKind::Temporary);
  }
}
