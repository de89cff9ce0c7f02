//===- Variables.cpp - param, state, read, write
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"

#include <cmath>

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

void ReadOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getResult(), getVariable()); }

LogicalResult ParamOp::verify() {
  if (int64_t layer = getLayer().value_or(0); layer < 0)
    return emitOpError("is in layer ") << layer << "; the nearest valid one is 0, the first";
  return success();
}

void StateOp::build(OpBuilder &builder, OperationState &state, StringRef name, StateRole role, RankedTensorType type,
                    Attribute init) {
  build(builder, state, name, role, type, init, /*slots=*/IntegerAttr());
}

LogicalResult StateOp::verify() {
  Type element = getTensorType().getElementType();
  bool isStash = getRole() == StateRole::Stash;
  if (isStash != getSlots().has_value())
    return isStash ? emitOpError("needs a number of slots: 'slots 1' or more")
                   : emitOpError("has slots, which only a stash may have");
  if (isStash && static_cast<int64_t>(*getSlots()) < 1)
    return emitOpError("has ") << static_cast<int64_t>(*getSlots()) << " slots; the nearest valid number is 1";
  if (isa<NormalAttr>(getInit())) {
    if (getRole() == StateRole::Accumulator || isStash)
      return emitOpError(isStash ? "a stash" : "an accumulator") << " must start from #graph.fill";
    if (!isa<FloatType>(element))
      return emitOpError("#graph.normal needs floating-point elements, but the type is ") << getTensorType();
    return success();
  }
  if (isa<FloatType>(element))
    return success();
  double value = cast<FillAttr>(getInit()).getValue();
  // An i1 is 0 or 1. The limits of the others are exact in f64.
  unsigned width = element.getIntOrFloatBitWidth();
  double low = width == 1 ? 0 : -std::ldexp(1.0, width - 1), high = width == 1 ? 2 : -low;
  if (value != std::trunc(value) || value < low || value >= high)
    return emitOpError("the fill value ") << value << " is no " << element;
  return success();
}
