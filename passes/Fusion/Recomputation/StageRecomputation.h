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

#include <optional>
#include <utility>
#include <vector>

namespace bowline {

/// Recomputation for a pipeline stage whose forward and backward pass are separate functions. The backward pass is one
/// function, or two if the schedule divides it: gradients of inputs, then gradients of weights. A value that one
/// function computes and a later one uses goes through a stash, with one slot per microbatch between the two. This
/// class creates new stashes for the values that a choice keeps. The second half of a backward pass gets recomputed
/// values from the first. Values of variables, such as parameters and messages of other stages, and of arguments need
/// no stash: each function reads the variables itself and has arguments of the same names.
class StageRecomputation {
public:
  /// The timeline of \p entry runs the functions; \p symbols is that of their module. Every stash that \p forward
  /// writes and \p backward reads must have its last use in \p backward.
  StageRecomputation(graph::FuncOp forward, llvm::ArrayRef<graph::FuncOp> backward, graph::EntryOp entry,
                     mlir::SymbolTable &symbols);

  using Choose = llvm::function_ref<Recomputation::Choice(const Recomputation &, int64_t slots)>;

  struct Result {
    int64_t slots = 0;     // microbatches between the forward pass and the end of the backward pass
    double totalFlops = 0; // of all functions, before recomputation
    Recomputation::Choice none, chosen;
  };
  /// Returns none, without a change, if the backward pass uses no forward value.
  std::optional<Result> run(Choose choose);

private:
  struct Stash {
    graph::StateOp state;
    int writer; // function
  };

  mlir::Block &bodyOf(int function) { return functions[function].getBody().front(); }
  /// The function whose body \p block is.
  int functionOf(mlir::Block *block);

  /// Moves the backward pass behind the forward pass, where values need no stashes.
  void join();
  void take(int function, llvm::SmallVectorImpl<graph::WriteOp> &unused);

  /// Moves each operation of the backward pass to its function, and clones to that of their first user.
  void divide();
  /// A value of an earlier function, in \p function.
  mlir::Value valueIn(int function, mlir::Value value);
  /// The copy that \p function has of the gathered parameter \p value of \p home; null where it has none.
  mlir::Value gatheredIn(int function, int home, mlir::Value value);
  mlir::Value argumentIn(int function, mlir::BlockArgument argument, mlir::StringRef name);
  mlir::Value throughStash(int function, mlir::Value value);

  /// The microbatches between a function and a later one, at most.
  int64_t slotsBetween(int writer, int reader);

  llvm::SmallVector<graph::FuncOp> functions; // in their order, the forward pass first
  graph::EntryOp entry;
  mlir::SymbolTable &symbols;
  llvm::DenseSet<mlir::Operation *> forwardOps;
  llvm::DenseMap<mlir::Operation *, int> homes;                    // functions of the backward pass's operations
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> standIns; // for arguments, while all are joined
  llvm::DenseMap<std::pair<mlir::Value, int>, mlir::Value> known;  // by value and function
  llvm::DenseMap<mlir::Value, Stash> stashes;                      // new ones, and those that something sends too
  std::vector<mlir::OpBuilder> begins;                             // by function: where values of others are read
  int64_t made = 0;
};

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_RECOMPUTATION_STAGERECOMPUTATION_H
