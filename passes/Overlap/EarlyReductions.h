//===- EarlyReductions.h - Reductions of a pipeline move to the call that completes their operands
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_OVERLAP_EARLYREDUCTIONS_H
#define BOWLINE_PASSES_OVERLAP_EARLYREDUCTIONS_H

#include "mlir/IR/SymbolTable.h"
#include "passes/Analysis/Lifetimes.h"
#include "llvm/ADT/DenseMap.h"

#include <map>
#include <vector>

namespace bowline {

/// Moves reductions of gradients from the update to an earlier call, in programs whose timeline alternates between
/// segments. The last call, the update, begins with reductions of values that other calls sum up. The operands of a
/// reduction are complete after one of these calls: in a pipeline, the last backward pass of a stage. The reduction
/// moves to that call, with the copies and kernels that compute its operands, and can begin behind the command that
/// completes them. If the call's segment runs only once, the reduction moves into it, else into a copy of it that
/// replaces this one call. All other calls and commands of the update stay as they are.
///
/// An all-reduce becomes in place if no other command needs its operand: in these programs, a buffer used by several
/// segments shares its memory with no other buffer, so a separate result would cost memory.
///
/// A reduction along the stages' axis does not move. All ranks of a moved reduction have the same program and issue it
/// at the same point, and ranks of other stages do not take part. So moving it cannot introduce a
/// deadlock.
class EarlyReductions {
public:
  EarlyReductions(plan::ProgramOp program, mlir::SymbolTable &symbols) : program(program), symbols(symbols) {}

  /// Returns the number of moved reductions. Does not erase buffers that become unused.
  int64_t run();

private:
  /// A command of the update.
  struct Command {
    mlir::Operation *op;
    std::vector<size_t> before; // the commands of the update that it has to come after
    int64_t call = -1;          // the first one behind which it may run; -1: none but the update
    int64_t place = -1;         // the call that it moves to; -1: it stays
  };
  /// The last calls that read or write a buffer; -1: none.
  struct Accesses {
    int64_t read = -1, write = -1;
  };

  void readCalls();
  void readUpdate();
  int64_t callOf(const Command &command);
  /// Returns whether a call can have reductions scheduled into it.
  bool isOpen(int64_t call);
  void choosePlaces();
  bool reducesInPlace(plan::CollectiveOp allReduce, unsigned index, int64_t place);
  void reduceInPlace(plan::CollectiveOp allReduce, int64_t place);
  void moveTo(int64_t call, llvm::ArrayRef<mlir::Operation *> moved);
  plan::SegmentOp copyOf(int64_t call);
  void insertWhenComplete(mlir::Block &body, llvm::ArrayRef<mlir::Operation *> moved);

  plan::ProgramOp program;
  mlir::SymbolTable &symbols;
  llvm::SmallVector<plan::SegmentOp> calls; // without the update
  plan::SegmentOp update;
  std::vector<Command> commands;
  llvm::DenseMap<mlir::Operation *, size_t> indexOf; // index in `commands`
  llvm::DenseMap<mlir::Value, Accesses> accesses;    // accesses by calls
};

} // namespace bowline

#endif // BOWLINE_PASSES_OVERLAP_EARLYREDUCTIONS_H
