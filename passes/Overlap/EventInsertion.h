//===- EventInsertion.h - Commands of several streams keep the order that they need
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_OVERLAP_EVENTINSERTION_H
#define BOWLINE_PASSES_OVERLAP_EVENTINSERTION_H

#include "dialects/Plan/PlanOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace bowline {

/// Orders the commands of a program that are on different streams: where two use the same slot of a buffer that one of
/// them writes, in any calls of the timeline, the earlier one is followed by a signal and the later one preceded by a
/// wait for it. Buffers with several slots get as many events, so that a call waits for commands on its own slot.
/// Events that a call waits for before any call signals them are signalled by a segment "begin" in front of all others.
///
/// Where the module's target orders communications (targets::Target::orders_communications), each one is ordered in the
/// same way with the one before it in the timeline, as if all of them used one more buffer.
///
/// Correct, and not lean: EventElision removes the redundant waits and signals. Existing signals and waits stay. Runs
/// before memory is packed: lifetimes keep apart buffers that share memory. Linear in the commands of the timeline
/// times the streams.
class EventInsertion {
public:
  EventInsertion(plan::ProgramOp program, mlir::SymbolTable &symbols, bool ordersCommunications = false)
      : program(program), symbols(symbols), ordersCommunications(ordersCommunications) {}

  void run();

private:
  /// A command that another has to wait for, and the slots of the buffer that both use.
  using Source = std::pair<mlir::Operation *, int64_t>;

  /// The last accesses of one slot of a buffer.
  struct LastAccesses {
    mlir::Operation *writer = nullptr;
    llvm::SmallVector<mlir::Operation *, 2> readers; // the last one of each stream since the write
  };

  void findOrders();
  void addOrder(mlir::Operation *earlier, mlir::Operation *later, int64_t slots);
  void insertSignals();
  void signalFirst();

  plan::ProgramOp program;
  mlir::SymbolTable &symbols;
  bool ordersCommunications;
  llvm::SetVector<std::pair<Source, mlir::Operation *>> orders;
  llvm::MapVector<Source, int64_t> eventOf; // the first of `slots`
};

} // namespace bowline

#endif // BOWLINE_PASSES_OVERLAP_EVENTINSERTION_H
