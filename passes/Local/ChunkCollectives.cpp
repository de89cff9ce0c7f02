//===- ChunkCollectives.cpp - Divide products and their collectives into chunks that overlap
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Remarks.h"
#include "passes/Analysis/ModuleTarget.h"
#include "passes/Local/Collectives/CollectiveChunking.h"
#include "passes/Local/Collectives/UnusedLine.h"
#include "passes/Local/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_CHUNKCOLLECTIVES
#include "passes/Local/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class ChunkCollectives : public bowline::impl::ChunkCollectivesBase<ChunkCollectives> {
public:
  using ChunkCollectivesBase::ChunkCollectivesBase;

  void runOnProgram() override {
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    std::optional<int64_t> chunks = dist::overlapChunksOf(getOperation());
    if (chunks == 1)
      return markAllAnalysesPreserved();
    auto line = dist::StrategyOp::of(getOperation()).getOnly<dist::OverlapChunksOp>();
    if (!mesh || mesh.getRankCount() == 1) {
      remarkUnused(getOperation(), line, "divided", "there is one rank");
      return markAllAnalysesPreserved();
    }
    FailureOr<targets::CostModel> model = costModelOf(getOperation(), links);
    if (failed(model))
      return signalPassFailure();
    int64_t all = 0, pairs = 0;
    for (auto function : getOperation().getOps<graph::FuncOp>()) {
      CollectiveChunking chunking(mesh, chunks.value_or(0), *model);
      int64_t divided = chunking.run(function.getBody().front());
      all += divided;
      pairs += chunking.countPairs();
      if (divided > 0)
        remark::passed(function.getLoc(), remark::RemarkOpts::name("ChunkCollectives").category("overlap"))
            << llvm::formatv("{0}: {1} collectives overlap the products beside them in chunks", function.getName(),
                             divided)
                   .str();
    }
    if (all == 0)
      remarkUnused(getOperation(), line, "divided",
                   chunks || pairs == 0
                       ? "no product with rows for several chunks has a sum, a scatter or a gather beside it"
                       : "by the cost model no number of chunks takes less time than one; --link describes the "
                         "network");
  }
};

} // namespace
