//===- StageOps.h - The stage dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_STAGE_STAGEOPS_H
#define BOWLINE_DIALECTS_STAGE_STAGEOPS_H

#include "dialects/Graph/GraphOpInterfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <optional>

namespace bowline::stage {
/// The side-effect resource that stands for the links between ranks of a pipeline; sends and receives touch it.
struct LinksResource : mlir::SideEffects::Resource::Base<LinksResource> {
  llvm::StringRef getName() final { return "stage links"; }
};
} // namespace bowline::stage

#include "dialects/Stage/StageDialect.h.inc"
#include "dialects/Stage/StageOpInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/Stage/StageOps.h.inc"

namespace bowline::stage {

/// The number of stages that the module of \p op is divided into; none where it is not divided.
std::optional<int64_t> countOf(mlir::Operation *op);

/// The mesh axis along which the pipeline's ranks lie, from `stage.axis` of the module around \p op; null if it has
/// none.
mlir::StringAttr axisOf(mlir::Operation *op);

/// The stages in `stage.index`; empty where there is none.
llvm::ArrayRef<int64_t> indexOf(mlir::Operation *op);

/// Returns whether all stages take part in \p op and receive its result, as in stage.sum and stage.broadcast.
bool isForAll(mlir::Operation *op);

/// Returns whether \p op, in the program of one rank, communicates with ranks of other stages: a send, a receive, or a
/// collective along `stage.axis`. Passes must keep the order of such operations, to match the other ranks' programs.
bool isBetweenStages(mlir::Operation *op);

/// Moves \p value from stage \p from to stage \p to by a chain of transfers, one per pair of neighbouring stages.
/// Returns \p value itself if the two stages are equal.
mlir::Value createTransfers(mlir::OpBuilder &builder, mlir::Location location, mlir::Value value, int64_t from,
                            int64_t to);

} // namespace bowline::stage

#endif // BOWLINE_DIALECTS_STAGE_STAGEOPS_H
