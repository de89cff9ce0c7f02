//===- GlobalToLocal.cpp - From global tensors to the part that each rank holds
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/Local/Passes.h"
#include "passes/Local/Tensors/Localization.h"

namespace bowline {
#define GEN_PASS_DEF_GLOBALTOLOCAL
#include "passes/Local/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class GlobalToLocal : public bowline::impl::GlobalToLocalBase<GlobalToLocal> {
public:
  using GlobalToLocalBase::GlobalToLocalBase;

  void runOnProgram() override {
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    if (!mesh || mesh.getRankCount() == 1)
      return markAllAnalysesPreserved();
    if (failed(Localization(getOperation(), mesh).run()))
      signalPassFailure();
  }
};

} // namespace
