//===- FuseEpilogues.cpp - Fold elementwise work into contractions
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"
#include "passes/Fusion/Epilogues/EpilogueFusion.h"
#include "passes/Fusion/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_FUSEEPILOGUES
#include "passes/Fusion/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class FuseEpilogues : public bowline::impl::FuseEpiloguesBase<FuseEpilogues> {
public:
  using FuseEpiloguesBase::FuseEpiloguesBase;

  void runOnProgram() override {
    SmallVector<graph::FusionOp> groups;
    getOperation().walk([&](graph::FusionOp group) { groups.push_back(group); });
    for (graph::FusionOp group : groups) {
      if (fuse(group))
        continue;
      if (graph::FusionOp peeled = EpilogueFusion::peel(group))
        fuse(peeled);
    }
  }

private:
  bool fuse(graph::FusionOp group) {
    auto epilogue = EpilogueFusion::match(group);
    if (!epilogue)
      return false;
    std::string text = llvm::formatv("folded {0} operations into a contraction, saved {1:F1} MiB of traffic",
                                     epilogue->operationCount(), epilogue->savedBytes() / double(1 << 20));
    graph::FusionOp fused = epilogue->fuse();
    remark::passed(fused.getLoc(), remark::RemarkOpts::name("FuseEpilogues").category("fusion")) << text;
    return true;
  }
};

} // namespace
