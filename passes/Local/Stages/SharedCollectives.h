//===- SharedCollectives.h - Collectives that run once for all microbatches of a pass
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_STAGES_SHAREDCOLLECTIVES_H
#define BOWLINE_PASSES_LOCAL_STAGES_SHAREDCOLLECTIVES_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

#include <map>
#include <string>

namespace bowline {

/// Shares the collectives of ZeRO 3 among microbatches. If a rank runs a pass of a stage for all microbatches in a row,
/// as in GPipe and breadth-first schedules or without stages, a function in front of the row gathers the parameters
/// once. The pass accumulates whole gradients, and a function behind the row reduces them once (Lamy-Poirier, 2023).
class SharedCollectives {
public:
  /// \p entry is in \p role, and runs a training step.
  SharedCollectives(mlir::ModuleOp role, graph::EntryOp entry) : role(role), symbols(role), entry(entry) {}

  struct Counts {
    int64_t gathers = 0, reductions = 0; // collectives that run once
  };
  Counts run();

private:
  /// A pass whose calls are consecutive in the timeline: the indices of its first and its last call.
  struct Row {
    graph::FuncOp function;
    size_t first, last;
  };
  llvm::SmallVector<Row> findRows();

  /// The functions in front of and behind a row; null where they would be empty.
  graph::FuncOp gatherBefore(graph::FuncOp function);
  graph::FuncOp reduceBehind(graph::FuncOp function, graph::FuncOp before);
  graph::FuncOp createFunction(const llvm::Twine &name, graph::FuncOp function);
  /// A state for all or a part of \p variable. \p summands: axes along which ranks have summands of it.
  graph::StateOp createState(const llvm::Twine &name, mlir::Type type, graph::FuncOp user, mlir::Operation *variable,
                             mlir::ArrayAttr summands);
  void addToEntry(llvm::ArrayRef<Row> rows, llvm::ArrayRef<std::pair<graph::FuncOp, graph::FuncOp>> around);

  mlir::ModuleOp role;
  mlir::SymbolTable symbols;
  graph::EntryOp entry;
  Counts counts;
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_STAGES_SHAREDCOLLECTIVES_H
