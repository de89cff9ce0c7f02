//===- HoistInvariants.cpp - Run launches once that give the same for every microbatch
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Remarks.h"
#include "passes/Analysis/Roles.h"
#include "passes/Analysis/TemporaryBlocks.h"
#include "passes/Hoisting/InvariantHoisting.h"
#include "passes/Hoisting/Passes.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

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
    size_t most = std::numeric_limits<size_t>::max();
    if (memoryLimit > 0) {
      RoleCopy copy(module);
      size_t all = InvariantHoisting(*copy).run(most);
      most = changesWithin(module, memoryLimit, all, [](ModuleOp copy, size_t n) { InvariantHoisting(copy).run(n); });
    }
    size_t moved = InvariantHoisting(module).run(most);
    if (moved > 0)
      remark::passed(module.getLoc(), remark::RemarkOpts::name("HoistInvariants").category("memory"))
          << llvm::formatv("{0} commands run once instead of once per microbatch", moved).str();
  }
};

} // namespace
