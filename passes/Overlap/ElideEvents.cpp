//===- ElideEvents.cpp - Remove waits that follow from the rest
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Remarks.h"
#include "passes/Overlap/EventElision.h"
#include "passes/Overlap/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_ELIDEEVENTS
#include "passes/Overlap/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class ElideEvents : public bowline::impl::ElideEventsBase<ElideEvents> {
public:
  using ElideEventsBase::ElideEventsBase;

  void runOnProgram() override {
    for (auto program : getOperation().getOps<plan::ProgramOp>()) {
      EventElision::Result removed = EventElision(program).run();
      if (removed.waits + removed.signals > 0)
        remark::passed(program.getLoc(), remark::RemarkOpts::name("ElideEvents").category("overlap"))
            << llvm::formatv("{0}: {1} waits and {2} signals follow from the others", program.getSymName(),
                             removed.waits, removed.signals)
                   .str();
    }
  }
};

} // namespace
