//===- InsertInit.cpp - The entry that initialises variables
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/Training/Passes.h"

namespace bowline {
#define GEN_PASS_DEF_INSERTINIT
#include "passes/Training/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

/// A stream number per variable name: FNV-1a, 64 bits (Fowler, Noll and Vo, 1991).
static int64_t streamOf(StringRef name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : name.bytes())
    hash = (hash ^ byte) * 0x100000001b3;
  return static_cast<int64_t>(hash);
}

static Value initialValue(ImplicitLocOpBuilder &builder, RankedTensorType type, Attribute init, StringRef key,
                          int64_t seed) {
  if (auto normal = dyn_cast<graph::NormalAttr>(init))
    return graph::RandomOp::create(builder, type, builder.getF64FloatAttr(normal.getStddev()),
                                   builder.getI64IntegerAttr(seed), builder.getI64IntegerAttr(streamOf(key)));
  double value = cast<graph::FillAttr>(init).getValue();
  Type element = type.getElementType();
  TypedAttr splat = isa<FloatType>(element) ? TypedAttr(builder.getFloatAttr(element, value))
                                            : TypedAttr(builder.getIntegerAttr(element, static_cast<int64_t>(value)));
  return arith::ConstantOp::create(builder, DenseElementsAttr::get(type, splat));
}

namespace {

class InsertInit : public bowline::impl::InsertInitBase<InsertInit> {
public:
  using InsertInitBase::InsertInitBase;

  void runOnProgram() override {
    ModuleOp module = getOperation();
    ImplicitLocOpBuilder builder(NameLoc::get(StringAttr::get(&getContext(), "init")), &getContext());
    SmallVector<graph::Variable> variables;
    for (auto variable : module.getOps<graph::Variable>())
      if (variable.isPersistent() && (weights || !variable.has(StateFlags::Weight)))
        variables.push_back(variable);
    if (variables.empty())
      return;
    if (auto taken = graph::EntryOp::find(module, EntryKind::Init)) {
      taken.emitOpError("is of kind init, which insert-init makes; leave out the kind");
      return signalPassFailure();
    }
    SymbolTable symbols(module);
    builder.setInsertionPointToEnd(module.getBody());
    auto function = graph::FuncOp::create(builder, "initialize", builder.getFunctionType({}, {}));
    symbols.insert(function);
    symbols.insert(graph::EntryOp::create(builder, EntryKind::Init, "init",
                                          builder.getArrayAttr(FlatSymbolRefAttr::get(function)),
                                          ArrayRef<int64_t>{1}));

    builder.setInsertionPointToStart(&function.getBody().emplaceBlock());
    for (graph::Variable variable : variables) {
      builder.setLoc(variable.getLoc());
      Value value = initialValue(builder, variable.getTensorType(), variable.getInit(), variable.getFileKey(), seed);
      graph::WriteOp::create(builder, variable.getVariableName(), value);
    }
    graph::ReturnOp::create(builder);
  }
};

} // namespace
