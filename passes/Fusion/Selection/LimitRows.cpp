//===- LimitRows.cpp - Leave out rows that no operation reads
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Remarks.h"
#include "passes/Fusion/Passes.h"
#include "passes/Fusion/Selection/ValidRows.h"

namespace bowline {
#define GEN_PASS_DEF_LIMITROWS
#include "passes/Fusion/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class LimitRows : public bowline::impl::LimitRowsBase<LimitRows> {
public:
  using LimitRowsBase::LimitRowsBase;

  void runOnProgram() override {
    // The last first: operations before a fusion may leave out the rows that the fusion leaves out, too.
    for (auto function : getOperation().getOps<graph::FuncOp>())
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front()))) {
        if (auto fusion = dyn_cast<graph::FusionOp>(op))
          limit(fusion);
        else if (auto model = dyn_cast<graph::KernelModel>(op))
          limit(model);
      }
  }

private:
  static void limit(graph::FusionOp fusion) {
    Value count = findRowCount(fusion);
    if (!count)
      return;
    std::optional<SmallVector<int64_t>> rowInputs = findRowInputs(fusion);
    if (!rowInputs)
      return;
    leaveRowsOut(fusion, count, *rowInputs);
    remark::passed(fusion.getLoc(), remark::RemarkOpts::name("LimitRows").category("fusion"))
        << "leaves out rows that no user reads";
  }

  static void limit(graph::KernelModel op) {
    Value count = findKernelRowCount(op);
    if (!count)
      return;
    remark::passed(op.getLoc(), remark::RemarkOpts::name("LimitRows").category("fusion"))
        << "kernel '" << op.kernelName() << "' leaves out rows that no user reads, or that are zeros";
    leaveRowsOut(op, count);
  }
};

} // namespace
