//===- PlacementChecker.h - Whether ranks compute parts of the whole program
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_PLACEMENT_PLACEMENTCHECKER_H
#define BOWLINE_COMPILER_PLACEMENT_PLACEMENTCHECKER_H

#include "compiler/Placement/PlacementRules.h"
#include "compiler/Placement/WholeProgram.h"

#include <map>
#include <set>

namespace bowline {

/// Derives the placement (Placement.h) of each value in the ranks' programs from those of arguments and variables, and
/// compares writes and results with those of the program on whole tensors. Relates operations one by one without
/// computing any of them, so that the sizes of tensors do not matter.
class PlacementChecker {
public:
  struct Summary {
    int64_t values = 0;  ///< values of all roles that have a placement
    int64_t written = 0; ///< writes to variables that were compared
    int64_t results = 0; ///< results of functions that were compared
    int64_t roles = 0;
  };

  /// `whole` is the program before it was divided.
  explicit PlacementChecker(mlir::OwningOpRef<mlir::ModuleOp> whole) : whole(std::move(whole)) {}

  /// Fails with a diagnostic at the first operation of `divided` that is related to none of the whole program, although
  /// a variable or a result needs it.
  llvm::LogicalResult check(mlir::ModuleOp divided);

  const Summary &summary() const { return total; }

private:
  using ValuePlacements = llvm::SmallVector<ValuePlacement, 1>;

  /// A function of one role, and how far it is.
  struct Run {
    int64_t role;
    graph::FuncOp local, whole;
    mlir::Block::iterator next;
    int64_t sums = 0; // over the stages, so far
    llvm::StringMap<mlir::Value> written;
    bool isDone() { return next == local.getBody().front().end(); }
  };

  /// Why a value has no placement, at the operation where that began.
  struct Problem {
    mlir::Operation *op = nullptr;
    std::string why;
  };

  enum class Step { Done, Waits, Failed };

  llvm::LogicalResult beginRuns();
  llvm::LogicalResult checkFragments();
  llvm::LogicalResult checkDeclarations();
  Step advance(Run &run);
  Step visit(Run &run, mlir::Operation *op);
  Step visitRead(Run &run, graph::ReadOp read);
  llvm::LogicalResult visitWrite(Run &run, graph::WriteOp write);
  llvm::LogicalResult visitReturn(Run &run, graph::ReturnOp op);
  Step visitSumOfStages(Run &run, dist::AllReduceOp op);
  void place(Run &run, mlir::Operation *op);
  void placeMoved(mlir::Operation *op);
  void placeGeneric(Run &run, mlir::Operation *op);
  void tryWhole(mlir::Operation *op, mlir::Operation *whole, Problem &problem);
  /// The placement of an operand of `op` as that of an operand of the whole program; none if it is another value.
  std::optional<ValuePlacement> asOperand(mlir::Value local, mlir::Value whole);
  llvm::ArrayRef<ValuePlacement> lookup(mlir::Value value) const;
  void add(mlir::Value value, ValuePlacement placement);
  llvm::LogicalResult emit(mlir::Value value, mlir::Operation *user, const llvm::Twine &needs);
  bool isAlongRoles(dist::AllReduceOp op) const;
  llvm::LogicalResult checkComplete();
  /// The name of a variable of one role: "role name".
  static std::string nameIn(int64_t role, llvm::StringRef name);

  WholeProgram whole;
  mlir::ModuleOp divided;
  dist::MeshOp mesh;
  std::optional<PlacementRules> rules;
  mlir::StringAttr roleAxis;
  llvm::SmallVector<mlir::ModuleOp> roles;
  std::vector<Run> runs;
  llvm::DenseMap<mlir::Value, ValuePlacements> placements;
  llvm::DenseMap<mlir::Value, Problem> problems;
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> sendOf; // key: receive
  llvm::DenseMap<mlir::Operation *, bool> visited;             // key: send
  llvm::StringMap<ValuePlacements> stashes;                    // key: "role name"
  std::set<std::string> stashWritten;
  llvm::StringMap<llvm::SmallVector<mlir::Value>> sumsOfStages; // key: "function number"
  std::set<std::pair<mlir::Operation *, std::string>> seen;     // compared writes and results
  Summary total;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_PLACEMENT_PLACEMENTCHECKER_H
