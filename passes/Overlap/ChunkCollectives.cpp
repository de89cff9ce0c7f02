//===- ChunkCollectives.cpp - Divide products and their collectives into chunks that overlap
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Remarks.h"
#include "passes/Analysis/MachineLinks.h"
#include "passes/Overlap/CollectiveChunking.h"
#include "passes/Overlap/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_CHUNKCOLLECTIVES
#include "passes/Overlap/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class ChunkCollectives : public bowline::impl::ChunkCollectivesBase<ChunkCollectives> {
public:
  using ChunkCollectivesBase::ChunkCollectivesBase;

  void runOnOperation() override {
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    if (chunks == 1 || !mesh || mesh.getRankCount() == 1)
      return markAllAnalysesPreserved();
    if (chunks < 0) {
      getOperation().emitError("there cannot be ") << chunks.getValue() << " chunks; the nearest valid number is 1";
      return signalPassFailure();
    }
    FailureOr<kernels::MachineModel> machine = machineWithLinks(getOperation(), links);
    if (failed(machine))
      return signalPassFailure();
    for (auto function : getOperation().getOps<graph::FuncOp>()) {
      int64_t divided = CollectiveChunking(mesh, chunks, threads, *machine).run(function.getBody().front());
      if (divided > 0)
        remark::passed(function.getLoc(), remark::RemarkOpts::name("ChunkCollectives").category("overlap"))
            << llvm::formatv("{0}: {1} collectives overlap the products beside them in chunks", function.getName(),
                             divided)
                   .str();
    }
  }
};

} // namespace
