//===- RoundedCopies.cpp - Rounded copies of parameters, for readers that round them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Zero/RoundedCopies.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace bowline;

static RankedTensorType withElements(Type type, Type element) { return cast<RankedTensorType>(type).clone(element); }

RoundedCopies::RoundedCopies(ModuleOp module, SymbolTable &symbols)
    : symbols(symbols), params(module.getOps<graph::ParamOp>()) {
  for (auto function : module.getOps<graph::FuncOp>())
    for (Operation &op : function.getBody().front())
      if (auto read = dyn_cast<graph::ReadOp>(op))
        uses[read.getVariableAttr().getAttr()].reads.push_back(read);
      else if (auto write = dyn_cast<graph::WriteOp>(op))
        uses[write.getVariableAttr().getAttr()].writes.push_back(write);
}

llvm::StringSet<> RoundedCopies::run(llvm::function_ref<bool(graph::ParamOp)> keep) {
  llvm::StringSet<> copied;
  for (graph::ParamOp param : params) {
    Type element = keep(param) ? Type() : roundedTypeOf(param);
    if (!element)
      continue;
    if (param.isMirror()) {
      narrow(param, element);
    } else if (isTrained(param)) {
      addCopy(param, element);
      copied.insert(param.getName());
    }
  }
  return copied;
}

/// Whether a function computes the new value from the old one.
bool RoundedCopies::isTrained(graph::ParamOp param) {
  const Uses &own = uses[param.getSymNameAttr()];
  return llvm::any_of(own.writes, [&](graph::WriteOp write) {
    return llvm::any_of(own.reads, [&](graph::ReadOp read) { return read->getBlock() == write->getBlock(); });
  });
}

/// The type to which everything but the update rounds the elements; null where an operation needs more bits of them, or
/// no operation needs any.
Type RoundedCopies::roundedTypeOf(graph::ParamOp param) {
  const Uses &own = uses[param.getSymNameAttr()];
  Type element;
  for (graph::ReadOp read : own.reads) {
    if (llvm::any_of(own.writes, [&](graph::WriteOp write) { return write->getBlock() == read->getBlock(); }))
      continue;
    for (Operation *user : read->getUsers()) {
      auto cast = dyn_cast<arith::TruncFOp>(user);
      Type type = cast ? getElementTypeOrSelf(cast.getType()) : Type();
      if (!type || (element && type != element))
        return {};
      element = type;
    }
  }
  return element;
}

void RoundedCopies::addCopy(graph::ParamOp param, Type element) {
  OpBuilder builder(param);
  builder.setInsertionPointAfter(param);
  auto copy = cast<graph::ParamOp>(builder.clone(*param));
  std::string type;
  llvm::raw_string_ostream(type) << element;
  copy.setSymName((param.getName() + "." + type).str());
  copy.setType(withElements(param.getTensorType(), element));
  copy.setMirrorOfAttr(FlatSymbolRefAttr::get(param));
  symbols.insert(copy, std::next(param->getIterator()));
  readInstead(param, copy);
  for (graph::WriteOp write : uses[param.getSymNameAttr()].writes) {
    builder.setInsertionPointAfter(write);
    graph::WriteOp::create(builder, write.getLoc(), copy.getName(), rounded(write.getValue(), element));
  }
}

void RoundedCopies::narrow(graph::ParamOp mirror, Type element) {
  mirror.setType(withElements(mirror.getTensorType(), element));
  readInstead(mirror, mirror);
  for (graph::WriteOp write : uses[mirror.getSymNameAttr()].writes) {
    Value wide = write.getValue();
    write.getValueMutable().assign(rounded(wide, element));
    while (auto unused = wide.use_empty() ? wide.getDefiningOp<stage::TransferOp>() : stage::TransferOp()) {
      wide = unused.getInput();
      unused.erase();
    }
  }
}

/// Functions that only read \p param read \p copy.
void RoundedCopies::readInstead(graph::ParamOp param, graph::ParamOp copy) {
  const Uses &own = uses[param.getSymNameAttr()];
  for (graph::ReadOp read : own.reads) {
    if (llvm::any_of(own.writes, [&](graph::WriteOp write) { return write->getBlock() == read->getBlock(); }))
      continue;
    OpBuilder builder(read);
    Value value = graph::ReadOp::create(builder, read.getLoc(), copy.getTensorType(), copy.getName());
    for (Operation *user : llvm::make_early_inc_range(read->getUsers())) {
      user->getResult(0).replaceAllUsesWith(value);
      user->erase();
    }
    read.erase();
  }
}

/// \p value in elements of \p element; a value of another stage is rounded before it is sent.
Value RoundedCopies::rounded(Value value, Type element) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  RankedTensorType type = withElements(value.getType(), element);
  auto transfer = value.getDefiningOp<stage::TransferOp>();
  if (!transfer)
    return arith::TruncFOp::create(builder, value.getLoc(), type, value);
  return stage::TransferOp::create(builder, value.getLoc(), type, rounded(transfer.getInput(), element),
                                   transfer.getFrom(), transfer.getTo());
}
