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

  void runOnOperation() override {
    ModuleOp module = getOperation();
    ImplicitLocOpBuilder builder(NameLoc::get(StringAttr::get(&getContext(), "init")), &getContext());
    builder.setInsertionPointToEnd(module.getBody());
    auto function = graph::FuncOp::create(builder, "initialize", builder.getFunctionType({}, {}));
    auto entry = graph::EntryOp::create(builder, "init", builder.getArrayAttr(FlatSymbolRefAttr::get(function)),
                                        ArrayRef<int64_t>{1});
    (void)entry;

    builder.setInsertionPointToStart(&function.getBody().emplaceBlock());
    for (Operation &op : *module.getBody()) {
      builder.setLoc(op.getLoc());
      if (auto param = dyn_cast<graph::ParamOp>(op))
        write(builder, param.getName(), param.getTensorType(), param.getInit(), param.getKey());
      else if (auto state = dyn_cast<graph::StateOp>(op); state && state.getRole() != graph::StateRole::Accumulator)
        write(builder, state.getName(), state.getTensorType(), state.getInit(), state.getName());
    }
    graph::ReturnOp::create(builder);
  }

private:
  void write(ImplicitLocOpBuilder &builder, StringRef name, RankedTensorType type, Attribute init, StringRef key) {
    graph::WriteOp::create(builder, name, initialValue(builder, type, init, key, seed));
  }
};

} // namespace
