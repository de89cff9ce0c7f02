//===- KeepAccumulators.cpp - Give sums in f32 to those who want them in f32
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "passes/Training/Passes.h"

namespace bowline {
#define GEN_PASS_DEF_KEEPACCUMULATORS
#include "passes/Training/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class KeepAccumulators : public bowline::impl::KeepAccumulatorsBase<KeepAccumulators> {
public:
  using KeepAccumulatorsBase::KeepAccumulatorsBase;

  void runOnProgram() override {
    SmallVector<arith::ExtFOp> casts;
    getOperation().walk([&](arith::ExtFOp cast) { casts.push_back(cast); });
    for (arith::ExtFOp cast : casts)
      keep(cast);
  }

private:
  void keep(arith::ExtFOp cast) {
    Value sum = cast.getIn();
    auto model = sum.getDefiningOp<graph::PrecisionModel>();
    if (!model || !model.accumulatesWide() || !sum.hasOneUse() || !getElementTypeOrSelf(cast.getType()).isF32())
      return;
    sum.setType(cast.getType());
    cast.replaceAllUsesWith(sum);
    cast.erase();
  }
};

} // namespace
