//===- Volumes.cpp - Bytes that a rank keeps and sends
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Zero/Volumes.h"

using namespace mlir;
using namespace bowline;

static int64_t bytesOfType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * static_cast<int64_t>(llvm::divideCeil(tensor.getElementTypeBitWidth(), 8));
}

int64_t Volumes::ofVariables() const {
  int64_t bytes = 0;
  for (auto variable : module.getOps<graph::Variable>())
    bytes += bytesOfType(variable.getTensorType());
  return bytes;
}

int64_t Volumes::sentBy(Operation *op) {
  dist::MeshOp mesh = dist::MeshOp::of(op);
  auto collective = dyn_cast<dist::Collective>(op);
  if (!mesh || !collective)
    return 0;
  int64_t ranks = mesh.getSize(llvm::to_vector(collective.getGroupAxes().getAsRange<StringAttr>())), bytes = 0;
  for (auto [input, output] : llvm::zip_equal(op->getOperands(), op->getResults()))
    bytes += std::max(bytesOfType(input.getType()), bytesOfType(output.getType()));
  return collective.getForm().definition().BytesSent(bytes, ranks);
}

int64_t Volumes::sentIn(graph::EntryOp entry) const {
  int64_t bytes = 0;
  for (auto [name, repeat] : llvm::zip_equal(entry.getFunctions().getAsRange<FlatSymbolRefAttr>(), entry.getRepeat()))
    module.lookupSymbol(name.getAttr())->walk([&, repeat = repeat](Operation *op) { bytes += repeat * sentBy(op); });
  return bytes;
}
