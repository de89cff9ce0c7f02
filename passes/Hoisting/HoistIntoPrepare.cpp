//===- HoistIntoPrepare.cpp - Run launches that depend on parameters alone when parameters are set
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Remarks.h"
#include "passes/Hoisting/Passes.h"
#include "passes/Hoisting/PrepareHoisting.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_HOISTINTOPREPARE
#include "passes/Hoisting/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class HoistIntoPrepare : public bowline::impl::HoistIntoPrepareBase<HoistIntoPrepare> {
public:
  using HoistIntoPrepareBase::HoistIntoPrepareBase;

  void runOnProgram() override {
    ModuleOp module = getOperation();
    size_t moved = PrepareHoisting(module).run();
    if (moved > 0)
      remark::passed(module.getLoc(), remark::RemarkOpts::name("HoistIntoPrepare").category("memory"))
          << llvm::formatv("{0} commands run once when parameters are set instead of in each call", moved).str();
  }
};

} // namespace
