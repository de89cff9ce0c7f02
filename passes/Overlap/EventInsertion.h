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

/// Orders conflicting commands on different streams by events. If two commands, in any calls of the timeline, use the
/// same slot of a buffer and one of them writes it, a signal follows the earlier one and a wait precedes the later one.
/// A buffer with several slots gets one event per slot, so that a call waits only for commands on its own slot. A new
/// first segment "begin" signals the events for which a call waits before any call signals them.
///
/// If the module's target orders communications (targets::Target::orders_communications), each communication is also
/// ordered after the previous one in the timeline, as if all of them used one more buffer.
///
/// Inserts redundant waits and signals, which EventElision removes. Existing signals and waits stay. Must run before
/// memory is packed, because lifetimes depend on events. Takes time linear in the commands of the timeline times the
/// streams.
class EventInsertion {
public:
  EventInsertion(plan::ProgramOp program, mlir::SymbolTable &symbols, bool ordersCommunications = false)
      : program(program), symbols(symbols), ordersCommunications(ordersCommunications) {}

  void run();

private:
  /// A command for which another must wait, and the number of slots of the buffer that both use.
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
