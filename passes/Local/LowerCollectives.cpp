//===- LowerCollectives.cpp - Collectives as a communicator executes them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Local/Collectives/CollectiveLowering.h"
#include "passes/Local/Passes.h"

namespace bowline {
#define GEN_PASS_DEF_LOWERCOLLECTIVES
#include "passes/Local/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class LowerCollectives : public bowline::impl::LowerCollectivesBase<LowerCollectives> {
public:
  using LowerCollectivesBase::LowerCollectivesBase;

  void runOnProgram() override {
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    if (!mesh)
      return markAllAnalysesPreserved();
    for (auto function : getOperation().getOps<graph::FuncOp>())
      CollectiveLowering(mesh).run(function);
  }
};

} // namespace
