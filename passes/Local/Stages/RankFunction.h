//===- RankFunction.h - A rank's part of what runs once
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

/// Makes the part of a function that one rank of a pipeline has, in this rank's module: of what runs once per step,
/// evaluation or program. Its operations keep their order, so that ranks meet in the same order everywhere:
///
/// | before            | after                                                                              |
/// |-------------------|------------------------------------------------------------------------------------|
/// | `stage.transfer`  | a send and a receive; nothing where the rank has the value, also from before       |
/// | `stage.sum`       | additions of the rank's own operands, then an all-reduce over the stages' axis      |
/// | `stage.broadcast` | an all-reduce of the value and of zeros                                             |
///
/// A sum is added up in another order than `stage.sum` says: first each rank's stages, then ranks.
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
  /// All-reduces a scalar of this rank, or zero where it has none.
  mlir::Value combine(mlir::Location location, mlir::Value value, mlir::Type type, llvm::StringRef why);
  std::string channelOf(stage::TransferOp op);

  graph::FuncOp function;
  const PipelineRanks &ranks;
  mlir::StringAttr axis;
  int64_t rank;
  PartialFunction part;
  /// The value that a transfer's result is a copy of, on the same rank.
  llvm::DenseMap<mlir::Value, mlir::Value> copies;
  /// Transfers between ranks that someone needs.
  llvm::DenseSet<mlir::Operation *> moves;
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_STAGES_RANKFUNCTION_H
