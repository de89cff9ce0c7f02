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
/// The links between the ranks of a pipeline, as a resource that sends and receives touch.
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

/// The axis of the mesh along which the ranks of the pipeline lie, which the module around \p op says; null without
/// one.
mlir::StringAttr axisOf(mlir::Operation *op);

/// The stages in `stage.index`; empty where there is none.
llvm::ArrayRef<int64_t> indexOf(mlir::Operation *op);

/// Returns whether all stages meet in an operation: its result is a value of each of them.
bool isForAll(mlir::Operation *op);

/// Returns whether ranks of other stages have a part in \p op, in the program of one rank: a send, a receive, or a
/// collective along `stage.axis`. They have other programs, so such operations keep their order.
bool isBetweenStages(mlir::Operation *op);

/// Brings \p value from stage \p from to stage \p to, by one transfer between each two neighbours on the way. Returns
/// \p value itself where both are one.
mlir::Value createTransfers(mlir::OpBuilder &builder, mlir::Location location, mlir::Value value, int64_t from,
                            int64_t to);

} // namespace bowline::stage

#endif // BOWLINE_DIALECTS_STAGE_STAGEOPS_H
