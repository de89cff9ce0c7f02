//===- StageDataflow.h - Stages that need a value, from the transfers between them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_STAGEDATAFLOW_H
#define BOWLINE_PASSES_STAGES_STAGEDATAFLOW_H

#include "dialects/Graph/GraphOps.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/StringMap.h"

#include <optional>

namespace bowline {

/// Computes the stages of all values and variables of a module with transfers, of global or local tensors.
///
/// The result of a transfer is in its target stage. Any other value is in the stage of its operands, or of the variable
/// that it reads; a variable is in the stage of the values written to it. A value without a stage floats: it depends
/// only on constants, arguments and floating variables, and every stage that needs it computes it itself. Results of
/// `stage.sum` and `stage.broadcast` float too, because all stages receive them.
class StageDataflow {
public:
  using Stages = llvm::SmallBitVector;

  /// `count` is the module's `stage.count`.
  StageDataflow(mlir::ModuleOp module, int64_t count);

  int64_t count() const { return numStages; }
  /// The stage of a value or a variable; none if it floats.
  std::optional<int64_t> stageOf(mlir::Value value) const;
  std::optional<int64_t> stageOf(llvm::StringRef variable) const;
  /// The stage of an operand that a transfer, stage.sum or stage.broadcast states in its attributes; else none.
  static std::optional<int64_t> takenIn(mlir::OpOperand &operand);
  /// The stages of an operation's operands, ascending: first of those that are not scalars, then of the scalars.
  struct OperandStages {
    llvm::SmallVector<int64_t, 2> tensors, scalars;
  };
  OperandStages operandStages(mlir::Operation *op) const;
  /// Whether an operation is the root of a tree of one or more additions whose leaves are scalars of several stages.
  bool isCombination(mlir::Operation *op) const { return combinations.contains(op); }
  /// Returns whether an operation is an addition inside such a tree, but not its root.
  bool isInnerCombination(mlir::Operation *op) const;

  /// The stages that take part in an operation.
  Stages stagesOf(mlir::Operation *op) const;
  Stages stagesOfVariable(llvm::StringRef variable) const;

private:
  bool addsStages(mlir::Operation *op) const;
  bool propagate(mlir::Operation *op);
  bool collectNeeds(mlir::Operation *op);
  std::optional<int64_t> resultStage(mlir::Operation *op) const;
  bool needsAreCollected(mlir::Operation *op) const;
  Stages neededBy(mlir::OpOperand &use) const;
  Stages only(int64_t stage) const;
  Stages all() const { return Stages(static_cast<unsigned>(numStages), true); }
  Stages none() const { return Stages(static_cast<unsigned>(numStages), false); }
  Stages needsOf(const Stages &collected) const { return collected.any() ? collected : all(); }

  int64_t numStages;
  llvm::DenseMap<mlir::Value, int64_t> values;
  llvm::DenseSet<mlir::Operation *> combinations;
  llvm::StringMap<int64_t> variables;
  /// The stages that need an operation, or a variable, that floats.
  llvm::DenseMap<mlir::Operation *, Stages> needs;
  llvm::StringMap<Stages> variableNeeds;
};

/// Returns whether a value is a tensor without dimensions.
bool isScalar(mlir::Value value);

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_STAGEDATAFLOW_H
