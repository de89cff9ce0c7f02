//===- VerifyFuse.cpp - Verifier of the program after phase `fuse`
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Plan/PlanOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Analysis/InPlaceUpdates.h"
#include "passes/Analysis/PhaseRules.h"
#include "passes/Fusion/Passes.h"

using namespace mlir;
using namespace bowline;

static bool isFusedLevel(Operation *op) {
  return isKernelBody(op) || isCommunication(op) || isStrategy(op) || graph::isView(op) ||
         isa<ModuleOp, dist::MeshOp, graph::FuncOp, graph::ReturnOp, graph::EntryOp, graph::Variable, graph::ReadOp,
             graph::WriteOp, arith::ConstantOp, plan::CallOp, plan::KernelOp, plan::AttachmentOp>(op);
}

LogicalResult bowline::verifyFuse(ModuleOp module) {
  if (failed(verifyAll(module, [](Operation *op) {
        return isFusedLevel(op) ? success() : refuse(op, Phase::Fuse, "every computation must be a call of a kernel");
      })))
    return failure();
  if (module.walk([](graph::FuncOp function) { return WalkResult(verifyInPlaceUpdates(function)); }).wasInterrupted())
    return failure();
  return verifyEntriesOfRoles(module);
}
