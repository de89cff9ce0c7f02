//===- PartialFunction.cpp - A part of a function as a function of its own
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Stages/PartialFunction.h"
#include "dialects/Stage/StageOps.h"

using namespace mlir;
using namespace bowline;
using stage::StageDialect;

void bowline::removeStageLabels(Operation *op) {
  op->removeAttr(StageDialect::kIndexAttr);
  op->removeAttr(StageDialect::kPhaseAttr);
}

PartialFunction::PartialFunction(graph::FuncOp original, StringRef name, std::optional<graph::FunctionPart> part,
                                 SymbolTable &symbols)
    : original(original), body(original.getContext()) {
  function = graph::FuncOp::create(body, original.getLoc(), name, original.getFunctionType(), part);
  symbols.insert(function);
  Block &block = function.getBody().empty() ? function.getBody().emplaceBlock() : function.getBody().front();
  for (BlockArgument argument : original.getBody().getArguments())
    values.map(argument, block.addArgument(argument.getType(), argument.getLoc()));
  body.setInsertionPointToEnd(&block);
}

Value PartialFunction::lookup(Value value) { return values.lookupOrNull(value); }

Operation *PartialFunction::clone(Operation *op) {
  Operation *copy = body.clone(*op, values);
  removeStageLabels(copy);
  return copy;
}

void PartialFunction::finish(ValueRange originalResults) {
  SmallVector<Value> results;
  for (Value result : originalResults)
    results.push_back(values.lookup(result));
  graph::ReturnOp::create(body, original.getLoc(), results);

  Block &block = function.getBody().front();
  SmallVector<DictionaryAttr> arguments;
  for (unsigned index = original.getNumArguments(); index-- > 0;)
    if (block.getArgument(index).use_empty())
      block.eraseArgument(index);
    else
      arguments.push_back(cast<FunctionOpInterface>(*original).getArgAttrDict(index));
  std::reverse(arguments.begin(), arguments.end());
  function.setFunctionType(
      FunctionType::get(function.getContext(), block.getArgumentTypes(), ValueRange(results).getTypes()));
  function.setAllArgAttrs(arguments);
  if (ArrayAttr attributes = original.getResAttrsAttr(); attributes && !results.empty())
    function.setResAttrsAttr(attributes);
}
