//===- ShareCollectives.cpp - Run collectives once for all microbatches of a pass
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Remarks.h"
#include "passes/Analysis/Roles.h"
#include "passes/Local/Passes.h"
#include "passes/Local/Stages/SharedCollectives.h"
#include "passes/Strategy/Strategy.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_SHARECOLLECTIVES
#include "passes/Local/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class ShareCollectives : public bowline::impl::ShareCollectivesBase<ShareCollectives> {
public:
  using ShareCollectivesBase::ShareCollectivesBase;

  void runOnProgram() override {
    ModuleOp role = getOperation();
    auto strategy = dist::StrategyOp::of(role);
    auto zero = strategy ? strategy.getOnly<dist::ZeroOp>() : dist::ZeroOp();
    auto entry = graph::EntryOp::find(role, EntryKind::TrainStep);
    if (!zero || !entry)
      return markAllAnalysesPreserved();
    FailureOr<Strategy> chosen = Strategy::fromOp(strategy);
    if (failed(chosen))
      return signalPassFailure();
    if (!chosen->gathersOnce)
      return markAllAnalysesPreserved();
    SharedCollectives::Counts counts = SharedCollectives(role, entry).run();
    if (counts.gathers == 0 && !zero.getOnce())
      return markAllAnalysesPreserved(); // a default
    if (counts.gathers == 0) {
      emitRemark(zero.getLoc()) << "'once' shares nothing: no pass of "
                                << (role.getSymName() ? "'" + role.getSymName()->str() + "'" : std::string("the step"))
                                << " takes several microbatches in a row; use --schedule gpipe or breadth_first, or "
                                   "several --microbatches without stages";
      return markAllAnalysesPreserved();
    }
    remark::passed(role.getLoc(), remark::RemarkOpts::name("ShareCollectives").category("communication"))
        << llvm::formatv("{0} gathers of parameters and {1} reductions of gradients run once for all microbatches of a "
                         "pass, instead of once for each",
                         counts.gathers, counts.reductions)
               .str();
  }
};

} // namespace
