//===- ScheduleCommands.cpp - Turn functions on values into programs of commands on buffers
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Scheduling/Passes.h"
#include "passes/Scheduling/ProgramBuilder.h"

namespace bowline {
#define GEN_PASS_DEF_SCHEDULECOMMANDS
#include "passes/Scheduling/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class ScheduleCommands : public bowline::impl::ScheduleCommandsBase<ScheduleCommands> {
public:
  using ScheduleCommandsBase::ScheduleCommandsBase;

  void runOnProgram() override {
    ModuleOp module = getOperation();
    ProgramBuilder programs(module);
    if (failed(programs.buildVariables()))
      return signalPassFailure();
    for (auto entry : llvm::to_vector(module.getOps<graph::EntryOp>()))
      if (failed(programs.buildEntry(entry)))
        return signalPassFailure();
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (isa<graph::FuncOp, graph::Variable>(op))
        op.erase();
  }
};

} // namespace
