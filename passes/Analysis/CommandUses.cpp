//===- CommandUses.cpp - The buffers that commands use
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/CommandUses.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace bowline;

SmallVector<CommandUse> bowline::usesOf(Operation *command, SymbolTable &symbols) {
  if (auto copy = dyn_cast<plan::CopyOp>(command))
    return {{copy.getSource(), true, false}, {copy.getDestination(), false, true}};
  SmallVector<CommandUse> transfers;
  auto add = [&](ValueRange buffers, bool reads) {
    for (Value buffer : buffers)
      transfers.push_back({buffer, reads, !reads});
  };
  if (auto collective = dyn_cast<plan::CollectiveOp>(command)) {
    add(collective.getSources(), /*reads=*/true);
    add(collective.getDestinations(), /*reads=*/false);
  } else if (auto send = dyn_cast<plan::SendOp>(command)) {
    add(send.getBuffers(), /*reads=*/true);
  } else if (auto receive = dyn_cast<plan::ReceiveOp>(command)) {
    add(receive.getBuffers(), /*reads=*/false);
  }
  auto launch = dyn_cast<plan::LaunchOp>(command);
  if (!launch) {
    // A command whose buffers this function does not know must not seem to use none.
    if (transfers.empty() && !isa<plan::SignalOp, plan::WaitOp>(command))
      llvm::reportFatalInternalError(command->getName().getStringRef() + " is no command whose buffers are known");
    return transfers;
  }
  auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
  SmallVector<CommandUse> uses;
  for (auto [index, buffer] : llvm::enumerate(launch.getOperands())) {
    plan::Access access = kernel.getArgument(index).getAccess();
    uses.push_back({buffer, access != plan::Access::Write, access != plan::Access::Read});
  }
  return uses;
}
