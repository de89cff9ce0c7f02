//===- RankFunction.h - A rank's part of a function that runs once
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_STAGES_RANKFUNCTION_H
#define BOWLINE_PASSES_LOCAL_STAGES_RANKFUNCTION_H

#include "passes/Local/Stages/MicrobatchFragments.h"

namespace bowline {

/// Creates, in the module of one rank of a pipeline, this rank's part of a function that does not run per microbatch.
/// Operations keep their order, so that all ranks communicate in the same order. Operations between stages become:
///
/// | before            | after                                                                              |
/// |-------------------|------------------------------------------------------------------------------------|
/// | `stage.transfer`  | a send and a receive; nothing where the rank has the value, also from before       |
/// | `stage.sum`       | additions of the rank's own operands, then an all-reduce over the stages' axis      |
/// | `stage.broadcast` | an all-reduce of the value and of zeros                                             |
///
/// A sum adds first over the stages of each rank, then over ranks, and so in another order than `stage.sum` states.
class RankFunction {
public:
  /// \p function is labelled. \p axis is that of the stages. \p symbols is that of the rank's module.
  RankFunction(graph::FuncOp function, const PipelineRanks &ranks, mlir::StringAttr axis, int64_t rank,
               mlir::SymbolTable &symbols);
  void run();

private:
  bool isHere(int64_t stage) const { return ranks.rankOf(stage) == rank; }
  void findMoves();
  void transfer(stage::TransferOp op);
  void sum(stage::SumOp op);
  void broadcast(stage::BroadcastOp op);
  /// All-reduces a scalar of this rank, or zero if `value` is null.
  mlir::Value combine(mlir::Location location, mlir::Value value, mlir::Type type, llvm::StringRef why);
  std::string channelOf(stage::TransferOp op);

  graph::FuncOp function;
  const PipelineRanks &ranks;
  mlir::StringAttr axis;
  int64_t rank;
  PartialFunction part;
  /// For the result of a transfer, the value on the same rank of which it is a copy.
  llvm::DenseMap<mlir::Value, mlir::Value> copies;
  /// Transfers between ranks whose results are used.
  llvm::DenseSet<mlir::Operation *> moves;
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_STAGES_RANKFUNCTION_H
