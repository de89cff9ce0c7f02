//===- HoistInvariants.cpp - Run launches once that give the same for every microbatch
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Remarks.h"
#include "passes/Hoisting/InvariantHoisting.h"
#include "passes/Hoisting/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_HOISTINVARIANTS
#include "passes/Hoisting/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class HoistInvariants : public bowline::impl::HoistInvariantsBase<HoistInvariants> {
public:
  using HoistInvariantsBase::HoistInvariantsBase;

  void runOnProgram() override {
    ModuleOp module = getOperation();
    size_t moved = InvariantHoisting(module).run();
    if (moved > 0)
      remark::passed(module.getLoc(), remark::RemarkOpts::name("HoistInvariants").category("memory"))
          << llvm::formatv("{0} commands run once instead of once per microbatch", moved).str();
  }
};

} // namespace
