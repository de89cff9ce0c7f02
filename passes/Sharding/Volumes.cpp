//===- Volumes.cpp - What a rank keeps and what it sends
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/Volumes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bowline;

static int64_t bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * static_cast<int64_t>(llvm::divideCeil(tensor.getElementTypeBitWidth(), 8));
}

int64_t Volumes::ofVariables() const {
  int64_t bytes = 0;
  for (auto variable : module.getOps<graph::Variable>())
    bytes += bytesOf(variable.getTensorType());
  return bytes;
}

int64_t Volumes::sentBy(Operation *op) {
  dist::MeshOp mesh = dist::MeshOp::of(op);
  auto axes = op->getAttrOfType<ArrayAttr>("axes");
  // By name: a dist.slice has axes as collectives have, and takes from what the rank has.
  if (!mesh || !axes || op->getNumOperands() == 0 || isa<dist::SliceOp>(op))
    return 0;
  int64_t ranks = mesh.getSize(llvm::to_vector(axes.getAsRange<StringAttr>())), bytes = 0;
  for (auto [input, output] : llvm::zip_equal(op->getOperands(), op->getResults()))
    bytes += std::max(bytesOf(input.getType()), bytesOf(output.getType()));
  auto bucket = dyn_cast<dist::BucketOp>(op);
  bool twice = isa<dist::AllReduceOp>(op) || (bucket && bucket.getKind() == dist::CollectiveKind::AllReduce);
  return (twice ? 2 : 1) * bytes * (ranks - 1) / ranks;
}

int64_t Volumes::sentIn(graph::EntryOp entry) const {
  int64_t bytes = 0;
  for (auto [name, repeat] : llvm::zip_equal(entry.getFunctions().getAsRange<FlatSymbolRefAttr>(), entry.getRepeat()))
    module.lookupSymbol(name.getAttr())->walk([&, repeat = repeat](Operation *op) {
      if (isa_and_present<dist::DistDialect>(op->getDialect()))
        bytes += repeat * sentBy(op);
    });
  return bytes;
}
