//===- WholeProgram.cpp - The program before it was divided
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Placement/WholeProgram.h"
#include "dialects/Dist/DistOps.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bowline;

/// Transfers and broadcasts between stages, and other divisions of a tensor, are the identity; a read behind a write
/// has the written value.
void WholeProgram::forward(graph::FuncOp function) {
  llvm::StringMap<Value> current;
  auto replace = [](Operation &op, Value value) {
    op.getResult(0).replaceAllUsesWith(value);
    op.erase();
  };
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    if (isa<stage::TransferOp, stage::BroadcastOp, dist::ReshardOp>(op)) {
      replace(op, op.getOperand(0));
    } else if (auto read = dyn_cast<graph::ReadOp>(op)) {
      Value &value = current[read.getVariable()];
      if (value)
        replace(op, value);
      else
        reads[function][read.getVariable()] = value = read.getResult();
    } else if (auto write = dyn_cast<graph::WriteOp>(op)) {
      writes[function][write.getVariable()] = current[write.getVariable()] = write.getValue();
    }
  }
  for (Operation &op : function.getBody().front())
    byName[function][op.getName().getStringRef()].push_back(&op);
}

WholeProgram::WholeProgram(OwningOpRef<ModuleOp> given) : module(std::move(given)) {
  for (auto function : module->getOps<graph::FuncOp>())
    forward(function);
}

/// A parameter that ranks keep beside its owner, rounded: the whole program gets it as well, by its definition.
void WholeProgram::defineRounded(graph::Variable mirror) {
  FlatSymbolRefAttr owner = mirror.getOwnerAttr();
  StringRef name = mirror.getVariableName();
  auto known = module->lookupSymbol<graph::Variable>(name);
  if (!mirror.has(StateFlags::Mirror) || !owner || isDefined.contains(name) ||
      (known && known.getTensorType().getElementType() == mirror.getTensorType().getElementType()))
    return;
  StringRef source = known ? name : owner.getValue();
  isDefined.insert(name);
  Type element = mirror.getTensorType().getElementType();
  for (auto function : module->getOps<graph::FuncOp>()) {
    OpBuilder builder = OpBuilder::atBlockTerminator(&function.getBody().front());
    auto rounded = [&](Value value) -> Value {
      for (Operation *user : value.getUsers())
        if (isa<arith::TruncFOp>(user) && graph::tensorType(user->getResult(0)).getElementType() == element)
          return user->getResult(0);
      RankedTensorType type = graph::tensorType(value).clone(element);
      return arith::TruncFOp::create(builder, mirror.getLoc(), type, value);
    };
    if (Value value = reads[function].lookup(source))
      reads[function][name] = rounded(value);
    if (Value value = writes[function].lookup(source))
      writes[function][name] = rounded(value);
  }
}
