//===- Variables.cpp - param, state, read, write
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"

using namespace mlir;
using namespace bowline::graph;

RankedTensorType bowline::graph::lookupVariableType(SymbolTableCollection &symbols, Operation *from,
                                                    FlatSymbolRefAttr symbol) {
  Operation *variable = symbols.lookupNearestSymbolFrom(from, symbol);
  if (auto param = dyn_cast_or_null<ParamOp>(variable))
    return param.getTensorType();
  if (auto state = dyn_cast_or_null<StateOp>(variable))
    return state.getTensorType();
  return {};
}

/// A use of a variable must have the variable's type.
static LogicalResult verifyUse(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr symbol, Type type) {
  RankedTensorType declared = lookupVariableType(symbols, op, symbol);
  if (!declared)
    return op->emitOpError("no graph.param or graph.state is named ") << symbol;
  if (declared != type)
    return op->emitOpError("type ") << type << " differs from the declared type of " << symbol << ", " << declared;
  return success();
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyUse(*this, symbols, getVariableAttr(), getType());
}

LogicalResult WriteOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyUse(*this, symbols, getVariableAttr(), getValue().getType());
}

LogicalResult StateOp::verify() {
  if (isa<NormalAttr>(getInit()) && !isa<FloatType>(getTensorType().getElementType()))
    return emitOpError("#graph.normal needs floating-point elements, but the type is ") << getTensorType();
  return success();
}
