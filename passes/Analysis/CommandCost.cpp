//===- CommandCost.cpp - About how long commands take
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/CommandCost.h"

using namespace mlir;
using namespace bowline;

static double bytesOf(ValueRange buffers) {
  double bytes = 0;
  for (Value buffer : buffers)
    bytes += static_cast<double>(buffer.getDefiningOp<plan::BufferOp>().getBytes());
  return bytes;
}

SmallVector<StringAttr> CommandCost::axesOf(Operation *communication) {
  auto name = communication->getAttrOfType<FlatSymbolRefAttr>("communicator");
  auto declared = symbols.lookup<plan::CommunicatorOp>(name.getValue());
  return declared ? llvm::to_vector(declared.getAxes().getAsRange<StringAttr>()) : SmallVector<StringAttr>();
}

targets::LinkOptions CommandCost::linkAlong(ArrayRef<StringAttr> axes) {
  return model.LinkAlong(llvm::map_range(axes, [](StringAttr axis) { return axis.getValue(); }));
}

double CommandCost::ofCollective(plan::CollectiveOp collective) {
  SmallVector<StringAttr> axes = axesOf(collective);
  auto ranks = static_cast<double>(mesh ? mesh.getSize(axes) : 1);
  double whole = std::max(bytesOf(collective.getDestinations()), bytesOf(collective.getSources()));
  return model.CollectiveSeconds(linkAlong(axes), collective.getDefinition(), whole, ranks);
}

double CommandCost::seconds(Operation *command) {
  if (isa<plan::SignalOp, plan::WaitOp>(command))
    return 0;
  if (auto launch = dyn_cast<plan::LaunchOp>(command)) {
    auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
    return model.LaunchSeconds(kernel.getFlops().convertToDouble(), kernel.getBytesMoved().convertToDouble());
  }
  if (auto copy = dyn_cast<plan::CopyOp>(command))
    return model.CopySeconds(bytesOf(copy.getSource()));
  if (auto collective = dyn_cast<plan::CollectiveOp>(command))
    return ofCollective(collective);
  ValueRange moved = isa<plan::SendOp>(command) ? ValueRange(cast<plan::SendOp>(command).getBuffers())
                                                : ValueRange(cast<plan::ReceiveOp>(command).getBuffers());
  return model.TransferSeconds(linkAlong(axesOf(command)), bytesOf(moved));
}
