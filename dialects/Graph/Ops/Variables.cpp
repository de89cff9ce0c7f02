//===- Variables.cpp - param, state, read, write
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/AssemblyDirectives.h"
#include "dialects/Graph/Ops/OpSupport.h"

#include <cmath>

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;

RankedTensorType bowline::graph::lookupVariableType(SymbolTableCollection &symbols, Operation *from,
                                                    FlatSymbolRefAttr symbol) {
  auto variable = dyn_cast_or_null<Variable>(symbols.lookupNearestSymbolFrom(from, symbol));
  return variable ? variable.getTensorType() : RankedTensorType();
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

//===----------------------------------------------------------------------===//
// ParamOp
//===----------------------------------------------------------------------===//

void ParamOp::build(OpBuilder &builder, OperationState &state, StringRef name, RankedTensorType type, Attribute init,
                    StringRef key) {
  build(builder, state, /*frozen=*/false, name, type, init, key, /*mirror_of=*/FlatSymbolRefAttr(), /*role=*/RoleAttr(),
        /*layer=*/IntegerAttr(), /*format=*/StringAttr());
}

LogicalResult ParamOp::verify() {
  bool isBlocks = getTensorType().getElementType().isUnsignedInteger(8);
  if (isBlocks != getFormat().has_value())
    return emitOpError("has a format exactly where its elements are ui8, bytes of blocks");
  if (isBlocks && failed(checkBlocks(getLoc(), getTensorType(), *getFormat())))
    return failure();
  if (isBlocks && !getFrozen())
    return emitOpError("is in blocks of bits, which nothing trains; make it 'frozen'");
  if (int64_t layer = getLayer().value_or(0); layer < 0)
    return emitOpError("is in layer ") << layer << "; the nearest valid one is 0, the first";
  return success();
}

StateFlags ParamOp::getFlags() {
  return StateFlags::Weight | (isTrained() ? StateFlags::Trained : StateFlags::None) |
         (isMirror() ? StateFlags::Mirror : StateFlags::Saved);
}

/// The global shape of a parameter. Once types are local, `dist.global_shape` says it: owner and mirror may be sharded
/// in different ways.
static ArrayRef<int64_t> wholeShapeOf(ParamOp param) {
  auto whole = param->getAttrOfType<DenseI64ArrayAttr>("dist.global_shape");
  return whole ? whole.asArrayRef() : param.getTensorType().getShape();
}

static bool mayMirror(ParamOp mirror, ParamOp owner) {
  Type own = mirror.getTensorType().getElementType(), wide = owner.getTensorType().getElementType();
  bool fits = own == wide || own.getIntOrFloatBitWidth() < wide.getIntOrFloatBitWidth();
  return fits && wholeShapeOf(mirror) == wholeShapeOf(owner) && mirror.getInit() == owner.getInit() &&
         mirror.getKey() == owner.getKey() && mirror.getFrozen() == owner.getFrozen();
}

LogicalResult ParamOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!isMirror())
    return success();
  Operation *named = symbols.lookupNearestSymbolFrom(*this, getMirrorOfAttr());
  if (!named) // the program of one rank may have the mirror alone
    return success();
  auto owner = dyn_cast<ParamOp>(named);
  if (!owner)
    return emitOpError("is a mirror of ") << getMirrorOfAttr() << ", which is no graph.param";
  if (owner.isMirror())
    return emitOpError("is a mirror of ") << getMirrorOfAttr() << ", which is a mirror itself; name its owner";
  if (!mayMirror(*this, owner))
    return emitOpError("is a mirror of ")
           << getMirrorOfAttr()
           << ", and must have the same shape, initial value and key, and the same or a narrower element type, and be "
              "frozen like it";
  return success();
}

//===----------------------------------------------------------------------===//
// StateOp
//===----------------------------------------------------------------------===//

void StateOp::build(OpBuilder &builder, OperationState &state, StringRef name, StateFlags flags, RankedTensorType type,
                    Attribute init, FlatSymbolRefAttr of) {
  build(builder, state, name, Lifetime::Persistent, flags, of, type, init, /*slots=*/IntegerAttr());
}

void StateOp::build(OpBuilder &builder, OperationState &state, StringRef name, Lifetime lifetime, RankedTensorType type,
                    Attribute init, FlatSymbolRefAttr of) {
  build(builder, state, name, lifetime, StateFlags::None, of, type, init, /*slots=*/IntegerAttr());
}

ParseResult bowline::graph::parsePurpose(OpAsmParser &parser, LifetimeAttr &lifetime, StateFlagsAttr &flags) {
  auto parsed = Lifetime::Persistent;
  for (Lifetime other : {Lifetime::Run, Lifetime::Microbatch})
    if (succeeded(parser.parseOptionalKeyword(stringifyLifetime(other))))
      parsed = other;
  lifetime = LifetimeAttr::get(parser.getContext(), parsed);
  flags = StateFlagsAttr::get(parser.getContext(), StateFlags::None);
  return parsed == Lifetime::Persistent ? parseStateFlags(parser, flags) : success();
}

void bowline::graph::printPurpose(OpAsmPrinter &printer, StateOp state, LifetimeAttr lifetime, StateFlagsAttr flags) {
  if (state.isPersistent())
    printStateFlags(printer, state, flags);
  else
    printer << stringifyLifetime(lifetime.getValue());
}

/// Checks that the flags of a state fit its lifetime and its type.
static LogicalResult verifyPurpose(StateOp state) {
  if (!state.isPersistent())
    return state.getFlags() == StateFlags::None ? success()
                                                : state.emitOpError("is not persistent, so it cannot have the flags ")
                                                      << stringifyStateFlags(state.getFlags());
  if (failed(verifyFlags(state, state.getFlags())))
    return failure();
  StateFlags ofParameters = state.getFlags() & (StateFlags::Trained | StateFlags::Weight | StateFlags::Mirror);
  if (ofParameters != StateFlags::None)
    return state.emitOpError("is ") << stringifyStateFlags(ofParameters) << ", which only a graph.param may be";
  RankedTensorType type = state.getTensorType();
  if (state.has(StateFlags::Step) && (type.getRank() != 0 || !type.getElementType().isInteger(32)))
    return state.emitOpError("counts steps, and must be a tensor<i32>, not ") << type;
  return success();
}

LogicalResult StateOp::verify() {
  Type element = getTensorType().getElementType();
  if (isStash() != getSlots().has_value())
    return isStash() ? emitOpError("needs a number of slots: 'slots 1' or more")
                     : emitOpError("has slots, which only a stash may have");
  if (isStash() && static_cast<int64_t>(*getSlots()) < 1)
    return emitOpError("has ") << static_cast<int64_t>(*getSlots()) << " slots; the nearest valid number is 1";
  if (failed(verifyPurpose(*this)))
    return failure();
  if (isa<NormalAttr>(getInit())) {
    if (!isPersistent())
      return emitOpError(isStash() ? "a stash" : "an accumulator") << " must start from #graph.fill";
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

LogicalResult StateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (getOfAttr() && !isa_and_present<ParamOp>(symbols.lookupNearestSymbolFrom(*this, getOfAttr())))
    return emitOpError("is of ") << getOfAttr() << ", which is no graph.param";
  return success();
}
