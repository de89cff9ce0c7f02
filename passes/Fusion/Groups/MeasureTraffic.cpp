//===- MeasureTraffic.cpp - Traffic of every operation on its own
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "passes/Fusion/Groups/Traffic.h"
#include "passes/Fusion/Passes.h"

namespace bowline {
#define GEN_PASS_DEF_MEASURETRAFFIC
#include "passes/Fusion/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class MeasureTraffic : public bowline::impl::MeasureTrafficBase<MeasureTraffic> {
public:
  using MeasureTrafficBase::MeasureTrafficBase;

  void runOnProgram() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    Builder builder(&getContext());
    SmallVector<NamedAttribute> perEntry;
    for (auto entry : module.getOps<graph::EntryOp>()) {
      double bytes = 0;
      for (auto [function, repeat] :
           llvm::zip_equal(entry.getFunctions().getAsRange<FlatSymbolRefAttr>(), entry.getRepeat()))
        if (auto called = symbols.lookup<graph::FuncOp>(function.getValue()))
          bytes += static_cast<double>(repeat) * trafficOf(called.getBody().front());
      perEntry.push_back(builder.getNamedAttr(entry.getName(), builder.getF64FloatAttr(bytes)));
    }
    module->setAttr(kUnfusedBytesAttr, builder.getDictionaryAttr(perEntry));
  }
};

} // namespace
