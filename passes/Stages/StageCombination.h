//===- StageCombination.h - Scalars that stages share become sums and broadcasts
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_STAGECOMBINATION_H
#define BOWLINE_PASSES_STAGES_STAGECOMBINATION_H

#include "passes/Stages/StageDataflow.h"

namespace bowline {

/// Makes communication of scalars between stages explicit, in functions that do not run per microbatch. A tree of
/// additions whose leaves are in different stages becomes one sum per stage and a `stage.sum`. Any other scalar that
/// another stage or the caller needs gets a `stage.broadcast`. The order of additions within a stage does not change.
///
/// Does not handle operations on tensors of several stages: these lack a transfer, which StageLabels reports.
class StageCombination {
public:
  /// `flow` is the dataflow of `function`'s module. It lacks the operations that run() creates.
  StageCombination(graph::FuncOp function, const StageDataflow &flow) : function(function), flow(flow) {}
  /// Returns whether anything changed.
  bool run();

private:
  void visit(mlir::Operation *op);
  void combine(mlir::Operation *root);
  void collect(mlir::Value value, llvm::SmallVectorImpl<mlir::Value> &leaves);
  mlir::Value broadcast(mlir::Value value, int64_t from);

  graph::FuncOp function;
  const StageDataflow &flow;
  bool changed = false;
  /// The last additions of trees that were replaced.
  llvm::SmallVector<mlir::Operation *> dead;
  llvm::DenseMap<mlir::Value, mlir::Value> broadcasts;
};

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_STAGECOMBINATION_H
