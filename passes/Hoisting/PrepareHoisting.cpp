//===- PrepareHoisting.cpp - Commands that depend on parameters alone run when these are set
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Hoisting/PrepareHoisting.h"
#include "passes/Analysis/KernelSignature.h"
#include "passes/Analysis/Lifetimes.h"

using namespace mlir;
using namespace bowline;

size_t PrepareHoisting::run(HoistListener moves) {
  size_t moved = 0;
  if (!prepare.isPossible())
    return moved;
  for (auto program : llvm::to_vector(module.getOps<plan::ProgramOp>())) {
    if (!prepare.isOther(program))
      continue;
    SmallVector<plan::LaunchOp> launches;
    program.walk([&](plan::LaunchOp launch) { launches.push_back(launch); });
    for (plan::LaunchOp launch : launches)
      if (isHoistable(launch)) {
        move(launch, moves);
        ++moved;
      }
  }
  if (moved > 0)
    prepare.keepResults();
  return moved;
}

void PrepareHoisting::move(plan::LaunchOp launch, HoistListener moves) {
  std::vector<const void *> content = {launch.getKernelAttr().getAsOpaquePointer()};
  for (const CommandUse &use : usesOf(launch, symbols))
    if (!use.writes)
      content.push_back(use.buffer.getAsOpaquePointer());
  auto [equal, isNew] = known.try_emplace(content, launch);
  if (moves)
    moves(launch, isNew);
  if (isNew)
    prepare.take(launch);
  else
    replaceLaunch(launch, equal->second);
}

/// Whether rows of a result of the launch hold no value, so that the result cannot persist.
static bool leavesRowsOut(plan::KernelOp kernel) {
  SmallVector<int64_t> rows = validRowsOf(kernel);
  return !rows.empty() && llvm::any_of(ArrayRef(rows).drop_front(), [&](int64_t argument) {
    return argument < static_cast<int64_t>(kernel.getNumArguments()) &&
           kernel.getArgument(argument).getAccess() != plan::Access::Read;
  });
}

bool PrepareHoisting::isHoistable(plan::LaunchOp launch) {
  return !leavesRowsOut(symbols.lookup<plan::KernelOp>(launch.getKernel())) && isWorthKeeping(launch, symbols) &&
         llvm::all_of(usesOf(launch, symbols), [&](const CommandUse &use) {
           return use.writes ? !use.reads && isOwnResult(launch, use.buffer) : prepare.isFixed(use.buffer);
         });
}

/// Whether `launch` alone writes `buffer`, before anything reads it.
bool PrepareHoisting::isOwnResult(plan::LaunchOp launch, Value buffer) {
  auto declared = buffer.getDefiningOp<plan::BufferOp>();
  if (declared.getKind() == plan::BufferKind::Scratch)
    return llvm::hasSingleElement(buffer.getUses());
  if (declared.getKind() != plan::BufferKind::Temporary || declared.getSlots() != 1 ||
      llvm::count(launch.getOperands(), buffer) != 1)
    return false;
  auto segment = launch->getParentOfType<plan::SegmentOp>();
  return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
    auto others = user->getParentOfType<plan::SegmentOp>();
    if (user == launch || !others)
      return user == launch;
    bool isLater = others == segment ? launch->isBeforeInBlock(user) : segment->isBeforeInBlock(others);
    return isLater && llvm::none_of(usesOf(user, symbols),
                                    [&](const CommandUse &use) { return use.buffer == buffer && use.writes; });
  });
}
