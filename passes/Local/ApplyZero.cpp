//===- ApplyZero.cpp - Ranks divide states, gradients and parameters
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Local/Passes.h"
#include "passes/Local/Zero/Volumes.h"
#include "passes/Local/Zero/ZeroSharding.h"
#include "passes/Strategy/Strategy.h"

namespace bowline {
#define GEN_PASS_DEF_APPLYZERO
#include "passes/Local/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class ApplyZero : public bowline::impl::ApplyZeroBase<ApplyZero> {
public:
  using ApplyZeroBase::ApplyZeroBase;

  void runOnProgram() override {
    dist::StrategyOp op = dist::StrategyOp::of(getOperation());
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    if (!op || !mesh)
      return markAllAnalysesPreserved();
    FailureOr<Strategy> strategy = Strategy::fromOp(op);
    if (failed(strategy))
      return signalPassFailure();
    if (strategy->zeroLevel == 0)
      return markAllAnalysesPreserved();
    auto axis = StringAttr::get(&getContext(), strategy->zeroAxis);
    if (strategy->getSize(axis) > 1 && !mesh.getAxis(axis)) {
      mlir::emitError(op.getOnly<dist::ZeroOp>().getLoc())
          << "ZeRO divides along " << axis
          << ", which is divided itself, as groups of its ranks share key heads; use another axis, or at most as many "
             "ranks along "
          << axis << " as there are key heads";
      return signalPassFailure();
    }
    if (mesh.getSize(axis) == 1)
      return markAllAnalysesPreserved();
    auto entry = graph::EntryOp::find(getOperation(), EntryKind::TrainStep);
    Volumes volumes(getOperation());
    int64_t kept = volumes.ofVariables(), sent = entry ? volumes.sentIn(entry) : 0;
    if (failed(ZeroSharding(getOperation(), mesh, strategy->zeroLevel, axis, strategy->prefetch,
                            op.getOnly<dist::ZeroOp>().getLoc())
                   .run()))
      return signalPassFailure();
    InFlightDiagnostic remark = mlir::emitRemark(op.getOnly<dist::ZeroOp>().getLoc());
    remark << "ZeRO " << strategy->zeroLevel << " along the " << mesh.getSize(axis) << " ranks of " << axis
           << ": a rank keeps " << volumes.ofVariables() << " bytes of parameters and states instead of " << kept;
    if (entry && !strategy->gathersOnce) // share-collectives comes later
      remark << " and sends " << volumes.sentIn(entry) << " bytes in a step instead of " << sent;
  }
};

} // namespace
