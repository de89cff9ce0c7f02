//===- Clones.cpp - The operations that compute forward values again
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Fusion/Recomputation/Recomputation.h"
#include "llvm/ADT/STLExtras.h"

#include <functional>

using namespace mlir;
using namespace bowline;

void Recomputation::apply(const Choice &choice) {
  IRMapping clones;
  auto isDropped = [&](Value value) {
    auto known = idOf.find(value);
    if (known == idOf.end())
      return false; // a clone
    int id = known->second;
    return id >= 0 && isForward(values[id].producer) && !choice.kept[id];
  };
  std::function<Value(Value, OpBuilder &)> rebuild = [&](Value value, OpBuilder &builder) -> Value {
    if (!isDropped(value))
      return value;
    if (Value known = clones.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (int id = idOf.lookup(value); values[id].again >= 0 && values[id].value == value) {
      Value again = gatherAgain(id, builder, [&](Value operand) { return rebuild(operand, builder); });
      clones.map(value, again);
      return again;
    }
    const OpInfo &info = ops[values[idOf.lookup(value)].producer];
    bool isPart = !graph::isView(op) && info.whole >= 0 &&
                  !comesWithWhole(info, [&](int id) { return !isDropped(values[id].value); });
    if (isPart)
      op = info.op;
    IRMapping operands;
    for (Value operand : op->getOperands())
      operands.map(operand, rebuild(operand, builder));
    Operation *clone = builder.clone(*op, operands);
    clone->setLoc(NameLoc::get(builder.getStringAttr("recomputed"), op->getLoc()));
    if (isa<dist::DistDialect>(op->getDialect())) {
      auto repetition = op->getAttrOfType<IntegerAttr>(dist::DistDialect::kRepetitionAttr);
      int64_t number = -1 - (repetition ? repetition.getInt() : 0); // others count from 0
      clone->setAttr(dist::DistDialect::kRepetitionAttr, builder.getI64IntegerAttr(number));
    }
    clones.map(isPart ? ValueRange(value) : ValueRange(op->getResults()), clone->getResults());
    return clones.lookup(value);
  };
  DenseSet<Operation *> forward;
  for (int op : forwardOps)
    forward.insert(ops[op].op);
  // Gathers move up on the way.
  for (Operation *op : llvm::map_to_vector(block, [](Operation &op) { return &op; })) {
    // Views of recomputed values are cloned with them: others may use the originals in the forward part.
    if (forward.contains(op) || graph::isView(op))
      continue;
    OpBuilder builder(op);
    for (OpOperand &operand : op->getOpOperands())
      operand.set(rebuild(operand.get(), builder));
  }
  // Backward views of values that are computed again would keep these alive.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (graph::isView(&op) && op.use_empty())
      op.erase();
}
