//===- Function.cpp - func, return, entry
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;

//===----------------------------------------------------------------------===//
// FuncOp
//===----------------------------------------------------------------------===//

void FuncOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type,
                   std::optional<FunctionPart> part) {
  if (part)
    state.addAttribute(getPartAttrName(state.name), FunctionPartAttr::get(builder.getContext(), *part));
  state.addAttribute(getSymNameAttrName(state.name), builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addRegion();
}

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> arguments, ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag,
                      std::string &) { return builder.getFunctionType(arguments, results); };
  SmallVector<StringRef> parts;
  for (uint32_t i = 0; i <= getMaxEnumValForFunctionPart(); ++i)
    parts.push_back(stringifyFunctionPart(static_cast<FunctionPart>(i)));
  StringRef name;
  if (succeeded(parser.parseOptionalKeyword(&name, parts)))
    result.addAttribute(getPartAttrName(result.name),
                        FunctionPartAttr::get(parser.getContext(), *symbolizeFunctionPart(name)));
  return function_interface_impl::parseFunctionOp(parser, result, /*allowVariadic=*/false,
                                                  getFunctionTypeAttrName(result.name), buildType,
                                                  getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void FuncOp::print(OpAsmPrinter &printer) {
  if (std::optional<FunctionPart> part = getPart())
    printer << ' ' << stringifyFunctionPart(*part);
  printer << ' ';
  if (std::optional<StringRef> visibility = getSymVisibility())
    printer << *visibility << ' ';
  printer.printSymbolName(getSymName());
  function_interface_impl::printFunctionSignature(printer, *this, getArgumentTypes(), /*isVariadic=*/false,
                                                  getResultTypes());
  function_interface_impl::printFunctionAttributes(printer, *this,
                                                   {getPartAttrName(), getSymVisibilityAttrName(),
                                                    getFunctionTypeAttrName(), getArgAttrsAttrName(),
                                                    getResAttrsAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/true);
}

void FuncOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (region.empty())
    return;
  for (BlockArgument argument : region.getArguments())
    setName(argument, getArgName(argument.getArgNumber()));
}

/// Verifies an argument or a result; `attribute` looks up an attribute of this one.
static LogicalResult verifyPort(FuncOp function, StringRef what, unsigned index, Type type,
                                function_ref<Attribute(StringRef)> attribute) {
  if (!isStaticAndNotEmpty(type))
    return function.emitOpError() << what << ' ' << index << " must be a tensor with a static shape without zeros, got "
                                  << type;
  if (Attribute name = attribute(FuncOp::kNameAttr); name && !isa<StringAttr>(name))
    return function.emitOpError() << what << ' ' << index << ": '" << FuncOp::kNameAttr << "' must be a string";
  return success();
}

LogicalResult FuncOp::verify() {
  for (auto [index, type] : llvm::enumerate(getArgumentTypes())) {
    auto attribute = [&, index = index](StringRef name) { return getArgAttr(index, name); };
    if (failed(verifyPort(*this, "argument", index, type, attribute)))
      return failure();
    Attribute limit = attribute(kLimitAttr);
    if (!limit)
      continue;
    auto value = dyn_cast<IntegerAttr>(limit);
    Type element = cast<RankedTensorType>(type).getElementType();
    if (!value || value.getInt() <= 0 || !(isa<IntegerType>(element) || element.isF32()))
      return emitOpError("argument ") << index << ": '" << kLimitAttr
                                      << "' must be a positive integer on an argument with elements of integers or f32";
  }
  for (auto [index, type] : llvm::enumerate(getResultTypes())) {
    auto attribute = [&, index = index](StringRef name) { return getResultAttr(index, name); };
    if (failed(verifyPort(*this, "result", index, type, attribute)))
      return failure();
  }
  return success();
}

std::string FuncOp::getArgName(unsigned index) {
  if (auto name = getArgAttrOfType<StringAttr>(index, kNameAttr))
    return name.str();
  return "arg" + std::to_string(index);
}

std::string FuncOp::getResultName(unsigned index) {
  if (auto name = getResultAttrOfType<StringAttr>(index, kNameAttr))
    return name.str();
  return "result" + std::to_string(index);
}

LogicalResult FuncOp::verifySymbolUses(SymbolTableCollection &) {
  // Forward and backward passes are of a stage, steps of a bucket, and there are several of these.
  if (!getPart() || llvm::is_contained({FunctionPart::Forward, FunctionPart::Backward, FunctionPart::BackwardInput,
                                        FunctionPart::BackwardWeight, FunctionPart::Step},
                                       *getPart()))
    return success();
  for (auto other : (*this)->getBlock()->getOps<FuncOp>()) {
    if (other == *this)
      return success();
    if (other.getPart() == getPart())
      return emitOpError("is the part '") << stringifyFunctionPart(*getPart()) << "', as @" << other.getSymName()
                                          << " already is; a module has at most one function of each part";
  }
  return success();
}

FuncOp FuncOp::find(ModuleOp module, FunctionPart part) {
  for (auto function : module.getOps<FuncOp>())
    if (function.getPart() == part)
      return function;
  return {};
}

//===----------------------------------------------------------------------===//
// ReturnOp
//===----------------------------------------------------------------------===//

void ReturnOp::build(OpBuilder &, OperationState &) {}

LogicalResult ReturnOp::verify() {
  auto function = cast<FuncOp>((*this)->getParentOp());
  if (getOperandTypes() != function.getResultTypes())
    return emitOpError("operand types must match the results of @") << function.getName();
  return success();
}

//===----------------------------------------------------------------------===//
// EntryOp
//===----------------------------------------------------------------------===//

void EntryOp::build(OpBuilder &builder, OperationState &state, EntryKind kind, StringRef name, ArrayAttr functions,
                    ArrayRef<int64_t> repeat) {
  build(builder, state, kind, name, /*bucket=*/0, functions, repeat, /*timeline=*/DenseI64ArrayAttr(),
        /*microbatches=*/IntegerAttr());
}

EntryOp EntryOp::find(ModuleOp module, EntryKind kind) {
  for (auto entry : module.getOps<EntryOp>())
    if (entry.getKind() == kind)
      return entry;
  return {};
}

SmallVector<EntryOp::Call> EntryOp::getCalls() {
  SmallVector<Call> calls;
  if (std::optional<ArrayRef<int64_t>> timeline = getTimeline()) {
    for (size_t i = 0; i + 1 < timeline->size(); i += 2)
      calls.push_back({(*timeline)[i], (*timeline)[i + 1]});
    return calls;
  }
  for (auto [function, repeat] : llvm::enumerate(getRepeat()))
    for (int64_t repetition = 0; repetition < repeat; ++repetition)
      calls.push_back({static_cast<int64_t>(function), repetition});
  return calls;
}

static LogicalResult verifyTimeline(EntryOp entry) {
  int64_t functions = static_cast<int64_t>(entry.getFunctions().size());
  if (!entry.getMicrobatches() || static_cast<int64_t>(*entry.getMicrobatches()) < 1)
    return entry.emitOpError("has a timeline, and needs a number of microbatches: 'microbatches 1' or more");
  int64_t microbatches = static_cast<int64_t>(*entry.getMicrobatches());
  if (entry.getTimeline()->size() % 2 != 0)
    return entry.emitOpError("timeline must be pairs of a function and a microbatch, but has ")
           << entry.getTimeline()->size() << " numbers";
  if (llvm::any_of(entry.getRepeat(), [](int64_t count) { return count != 1; }))
    return entry.emitOpError("has a timeline, which says how often functions run; make every repeat count 1");
  SmallVector<int64_t> runs(functions, 0);
  for (auto [position, call] : llvm::enumerate(entry.getCalls())) {
    if (call.first < 0 || call.first >= functions)
      return entry.emitOpError("timeline has function ")
             << call.first << " at place " << position << ", but functions are counted from 0 to " << functions - 1;
    if (call.second < 0 || call.second >= microbatches)
      return entry.emitOpError("timeline has microbatch ")
             << call.second << " at place " << position << ", but they are counted from 0 to " << microbatches - 1;
    ++runs[call.first];
  }
  for (auto [function, count] : llvm::enumerate(runs))
    if (count == 0)
      return entry.emitOpError("timeline never runs ") << entry.getFunctions()[function];
  if (runs.back() != 1 || entry.getCalls().back().first != functions - 1)
    return entry.emitOpError("timeline must run ") << entry.getFunctions()[functions - 1] << " once, at its end";
  return success();
}

/// Each repetition is a call with a slot of its own, of which a plan's loader takes so many (kMaxSlots).
static constexpr int64_t kMostRepeats = int64_t{1} << 20;

LogicalResult EntryOp::verify() {
  if (getKind() == EntryKind::Prepare)
    return emitOpError(
        "may not be of kind prepare: the compiler makes this entry from operations that depend on parameters alone; "
        "leave out the kind");
  if (failed(verifyBucket(*this, getKind(), static_cast<int64_t>(getBucket()))))
    return failure();
  if (getFunctions().empty())
    return emitOpError("needs at least one function");
  if (getRepeat().size() != getFunctions().size())
    return emitOpError("needs one repeat count per function, got ")
           << getRepeat().size() << " for " << getFunctions().size();
  for (int64_t count : getRepeat())
    if (count < 1 || count > kMostRepeats)
      return emitOpError("repeat counts must be 1 to ")
             << kMostRepeats << ", as slots of a plan's buffers, got " << count;
  if (getTimeline())
    return verifyTimeline(*this);
  if (getMicrobatches())
    return emitOpError("has a number of microbatches, which goes with a timeline");
  return success();
}

LogicalResult EntryOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyOnlyOfItsKind(*this)))
    return failure();
  for (auto [index, reference] : llvm::enumerate(getFunctions().getAsRange<FlatSymbolRefAttr>())) {
    auto function = symbols.lookupNearestSymbolFrom<FuncOp>(*this, reference);
    if (!function)
      return emitOpError("no graph.func is named ") << reference;
    if (function.getNumResults() > 0 && index + 1 != getFunctions().size())
      return emitOpError("only the last function may return results, but ") << reference << " does";
  }
  return success();
}
