//===- PadForDivisibility.cpp - Dimensions grow until their axes divide them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Sharding/Padding/Padding.h"
#include "passes/Sharding/Passes.h"

namespace bowline {
#define GEN_PASS_DEF_PADFORDIVISIBILITY
#include "passes/Sharding/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class PadForDivisibility : public bowline::impl::PadForDivisibilityBase<PadForDivisibility> {
public:
  using PadForDivisibilityBase::PadForDivisibilityBase;

  void runOnProgram() override {
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    if (!mesh || !Padding::isNeeded(getOperation(), mesh))
      return markAllAnalysesPreserved();
    repeatFreeValues(getOperation());
    if (failed(Padding(getOperation(), mesh).run()) || failed(Padding::verifyShards(getOperation(), mesh)))
      signalPassFailure();
  }
};

} // namespace
