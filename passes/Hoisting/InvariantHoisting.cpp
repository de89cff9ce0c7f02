//===- InvariantHoisting.cpp - Commands that give the same in every run of a segment run once
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Hoisting/InvariantHoisting.h"
#include "passes/Analysis/Lifetimes.h"

#include <map>
#include <vector>

using namespace mlir;
using namespace bowline;

/// A value that takes more bytes than its operands may still be kept up to this size.
static constexpr int64_t kSmallBytes = 1 << 20;

size_t InvariantHoisting::run(HoistListener moves) {
  size_t moved = 0;
  for (auto program : module.getOps<plan::ProgramOp>())
    for (auto segment : llvm::to_vector(program.getBody().front().getOps<plan::SegmentOp>()))
      moved += hoistFrom(segment, moves);
  return moved;
}

size_t InvariantHoisting::hoistFrom(plan::SegmentOp segment, HoistListener moves) {
  SegmentInvariants invariants(segment, symbols);
  if (invariants.runs() < 2)
    return 0;
  size_t moved = 0;
  // Equal launches, such as the copies of one that recomputation made, become one again.
  std::map<std::vector<const void *>, plan::LaunchOp> known;
  for (auto launch : llvm::to_vector(segment.getBody().front().getOps<plan::LaunchOp>())) {
    if (!isHoistable(launch, invariants))
      continue;
    std::vector<const void *> content = {launch.getKernelAttr().getAsOpaquePointer()};
    for (const CommandUse &use : usesOf(launch, symbols))
      if (use.writes)
        invariants.forgetWrites(use.buffer);
      else
        content.push_back(use.buffer.getAsOpaquePointer());
    auto [equal, isNew] = known.try_emplace(content, launch);
    if (moves)
      moves(launch, isNew);
    if (isNew)
      launch->moveBefore(&segmentBefore(segment).getBody().front(), segmentBefore(segment).getBody().front().end());
    else
      replaceLaunch(launch, equal->second);
    ++moved;
  }
  return moved;
}

void bowline::replaceLaunch(plan::LaunchOp launch, plan::LaunchOp equal) {
  SmallVector<Value> old(launch.getOperands()), results(equal.getOperands());
  launch.erase();
  for (auto [buffer, other] : llvm::zip(old, results))
    if (buffer != other) {
      buffer.replaceAllUsesWith(other);
      buffer.getDefiningOp()->erase();
    }
}

bool InvariantHoisting::isHoistable(plan::LaunchOp launch, const SegmentInvariants &invariants) {
  return isWorthKeeping(launch, symbols) && llvm::all_of(usesOf(launch, symbols), [&](const CommandUse &use) {
           return use.writes ? !use.reads && isOwnResult(launch, use.buffer, invariants)
                             : invariants.isInvariant(use.buffer);
         });
}

/// Whether `launch` alone writes `buffer`, before anything reads it.
bool InvariantHoisting::isOwnResult(plan::LaunchOp launch, Value buffer, const SegmentInvariants &invariants) {
  auto declared = buffer.getDefiningOp<plan::BufferOp>();
  if (declared.getKind() == plan::BufferKind::Scratch)
    return llvm::hasSingleElement(buffer.getUses());
  if (declared.getKind() != plan::BufferKind::Temporary || declared.getSlots() != 1 ||
      invariants.writesOf(buffer) != 1 || llvm::count(launch.getOperands(), buffer) != 1)
    return false;
  return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
    return user == launch || (user->getBlock() == launch->getBlock() && launch->isBeforeInBlock(user));
  });
}

bool bowline::isWorthKeeping(plan::LaunchOp launch, SymbolTable &symbols) {
  if (launch->hasAttr(kStaysAttr))
    return false;
  int64_t read = 0, written = 0;
  for (const CommandUse &use : usesOf(launch, symbols)) {
    auto buffer = use.buffer.getDefiningOp<plan::BufferOp>();
    if (buffer.getKind() != plan::BufferKind::Scratch)
      (use.writes ? written : read) += buffer.getBytes();
  }
  return written <= std::max(read, kSmallBytes);
}
