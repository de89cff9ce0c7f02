//===- OverlapCommands.cpp - Let communication run beside computation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Remarks.h"
#include "passes/Analysis/Roles.h"
#include "passes/Analysis/TemporaryBlocks.h"
#include "passes/Overlap/OverlapChoices.h"
#include "passes/Overlap/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_OVERLAPCOMMANDS
#include "passes/Overlap/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class OverlapCommands : public bowline::impl::OverlapCommandsBase<OverlapCommands> {
public:
  using OverlapCommandsBase::OverlapCommandsBase;

  void runOnProgram() override {
    ModuleOp module = getOperation();
    if (prefetch < 0) {
      module.emitError("parameters cannot be gathered ")
          << prefetch.getValue() << " layers ahead; the nearest valid number is 0";
      return signalPassFailure();
    }
    if (module.getOps<plan::CommunicatorOp>().empty())
      return;
    FailureOr<targets::CostModel> model = costModelOf(module, links);
    if (failed(model))
      return signalPassFailure();
    OverlapOptions most;
    most.model = *model;
    if (prefetch != kAsAnnotated)
      most.mostPrefetch = prefetch;
    std::optional<OverlapOptions> chosen = choose(module, most);
    if (chosen)
      overlap(module, *chosen);
    else
      remark::missed(module.getLoc(), remark::RemarkOpts::name("OverlapCommands").category("overlap"))
          << llvm::formatv("communication stays between commands that compute: beside them it would take more than the "
                           "{0} bytes of the memory limit",
                           memoryLimit.getValue())
                 .str();
    module.walk([](plan::CollectiveOp collective) { collective->removeAttr(dist::DistDialect::kPrefetchAttr); });
  }

private:
  static constexpr int64_t kAsAnnotated = std::numeric_limits<int64_t>::max();

  static void overlap(ModuleOp module, const OverlapOptions &options) {
    SymbolTable symbols(module);
    CommandOverlap overlap(module, symbols, options);
    for (auto program : module.getOps<plan::ProgramOp>()) {
      std::optional<CommandOverlap::Result> result = overlap.run(program);
      if (!result)
        continue;
      if (result->earlyReductions > 0)
        remark::passed(program.getLoc(), remark::RemarkOpts::name("EarlyReductions").category("overlap"))
            << llvm::formatv("{0}: {1} reductions begin in the last backward pass that adds to their operands, not "
                             "behind all backward passes",
                             program.getSymName(), result->earlyReductions)
                   .str();
      remark::passed(program.getLoc(), remark::RemarkOpts::name("OverlapCommands").category("overlap"))
          << llvm::formatv("{0}: {1:F1} ms of communication and computation in {2:F1} ms on {3} streams, as the cost "
                           "model says",
                           program.getSymName(), 1e3 * result->serialSeconds, 1e3 * result->seconds,
                           program.getStreams().size())
                 .str();
    }
  }

  /// The first of several choices, each with less memory than the one before, that is within the limit.
  std::optional<OverlapOptions> choose(ModuleOp module, const OverlapOptions &most) {
    if (memoryLimit == 0)
      return most;
    for (const OverlapOptions &options : overlapChoices(most)) {
      RoleCopy copy(module);
      overlapCopy(*copy, options);
      if (arenaBytes(*copy) <= memoryLimit)
        return options;
    }
    return std::nullopt;
  }
};

} // namespace
