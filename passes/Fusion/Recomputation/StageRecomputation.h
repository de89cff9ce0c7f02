//===- StageRecomputation.h - Which values of a pipeline's stage its backward pass computes again
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_FUSION_RECOMPUTATION_STAGERECOMPUTATION_H
#define BOWLINE_PASSES_FUSION_RECOMPUTATION_STAGERECOMPUTATION_H

#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/Fusion/Recomputation/Recomputation.h"

namespace bowline {

/// Recomputation for a stage whose forward and backward pass are two functions. What the one keeps for the other goes
/// through stashes, of which there are as many as microbatches are in flight; all of them are made anew for what the
/// choice keeps. What the forward pass reads itself, such as parameters and what other stages sent, the backward pass
/// reads again; it may get arguments of the forward pass, by the same name.
class StageRecomputation {
public:
  /// \p symbols is that of the functions' module. Every stash that \p forward writes and \p backward reads must have
  /// its last use in \p backward.
  StageRecomputation(graph::FuncOp forward, graph::FuncOp backward, mlir::SymbolTable &symbols);

  using Choose = llvm::function_ref<Recomputation::Choice(const Recomputation &, int64_t slots)>;

  struct Result {
    int64_t slots = 0;
    double totalFlops = 0; // of both functions, before recomputation
    Recomputation::Choice none, chosen;
  };
  /// Returns nothing where nothing is kept.
  std::optional<Result> run(Choose choose);

private:
  void join();
  void divide();
  mlir::Value inBackward(mlir::Value value, mlir::OpBuilder &builder);
  mlir::Value throughStash(mlir::Value value, mlir::OpBuilder &builder);

  graph::FuncOp forward, backward;
  mlir::SymbolTable &symbols;
  llvm::DenseSet<mlir::Operation *> forwardOps;
  llvm::SmallVector<mlir::BlockArgument> moved;   // arguments that stand for the backward pass's while both are joined
  llvm::DenseMap<mlir::Value, mlir::Value> known; // values in the backward pass, by those of the forward pass
  llvm::DenseMap<mlir::Value, llvm::StringRef> stashOf; // what is stashed for others too
  int64_t slots = 0, stashes = 0;
};

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_RECOMPUTATION_STAGERECOMPUTATION_H
