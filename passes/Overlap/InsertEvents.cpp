//===- InsertEvents.cpp - Order commands that run on several streams
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/ModuleTarget.h"
#include "passes/Overlap/EventInsertion.h"
#include "passes/Overlap/Passes.h"

namespace bowline {
#define GEN_PASS_DEF_INSERTEVENTS
#include "passes/Overlap/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class InsertEvents : public bowline::impl::InsertEventsBase<InsertEvents> {
public:
  using InsertEventsBase::InsertEventsBase;

  void runOnProgram() override {
    auto target = ModuleTarget::of(getOperation());
    if (failed(target))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    for (auto program : getOperation().getOps<plan::ProgramOp>())
      EventInsertion(program, symbols, (*target)->orders_communications).run();
  }
};

} // namespace
