//===- PropagateShardings.cpp - From a few shardings to those of all values
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/DimensionClasses.h"
#include "passes/Analysis/UsesInOrder.h"
#include "passes/Sharding/Assignment/OpenPatterns.h"
#include "passes/Sharding/Passes.h"
#include "passes/Sharding/Propagation/Propagation.h"
#include "passes/Sharding/Propagation/ReshardInsertion.h"

namespace bowline {
#define GEN_PASS_DEF_PROPAGATESHARDINGS
#include "passes/Sharding/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class PropagateShardings : public bowline::impl::PropagateShardingsBase<PropagateShardings> {
public:
  using PropagateShardingsBase::PropagateShardingsBase;

  void runOnProgram() override {
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    if (!mesh || mesh.getRankCount() == 1)
      return markAllAnalysesPreserved();
    if (failed(checkResults()))
      return signalPassFailure();
    duplicateRepeatedScalars();
    OpenPatterns open(getOperation());
    ShardingState state(getOperation(), mesh);
    Propagation(state).run();
    ReshardInsertion(state, largeBytes).run();
    state.annotate();
    open.remarkUnused();
  }

private:
  /// Callers get results whole; a wish that has no effect would be a wrong belief about them.
  LogicalResult checkResults() {
    for (auto function : getOperation().getOps<graph::FuncOp>())
      for (unsigned index = 0; index < function.getNumResults(); ++index)
        if (auto sharding = function.getResultAttrOfType<dist::ShardingAttr>(index, dist::DistDialect::kShardingAttr);
            sharding && !sharding.isReplicated())
          return function.emitOpError() << "result '" << function.getResultName(index)
                                        << "' cannot be sharded: results are whole on every rank; to keep the value "
                                           "sharded, write it to a variable with this sharding";
    return success();
  }

  /// A repeated scalar can be made in any pieces, so that each user gets one of its own.
  void duplicateRepeatedScalars() {
    getOperation().walk([](Operation *op) {
      if (!repeatsScalar(op))
        return;
      SmallVector<OpOperand *> uses = usesInOrder(op->getResult(0));
      for (OpOperand *use : llvm::drop_begin(uses)) {
        OpBuilder builder(op);
        use->set(builder.clone(*op)->getResult(0));
      }
    });
  }
};

} // namespace
