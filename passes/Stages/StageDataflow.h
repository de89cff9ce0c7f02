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

/// Stages of all values and variables of a module with transfers, global or local.
///
/// A value has a stage where a transfer brought it there, or where an operand or the variable that is read has one; a
/// variable, where a value with a stage is written to it. A value without a stage floats: it depends on constants,
/// arguments and floating variables alone, and every stage that needs it makes its own. The results of `stage.sum` and
/// `stage.broadcast` float too, for all stages have them.
class StageDataflow {
public:
  using Stages = llvm::SmallBitVector;

  /// `count` is the module's `stage.count`.
  StageDataflow(mlir::ModuleOp module, int64_t count);

  int64_t count() const { return numStages; }
  /// The stage of a value or a variable; none if it floats.
  std::optional<int64_t> stageOf(mlir::Value value) const;
  std::optional<int64_t> stageOf(llvm::StringRef variable) const;
  /// The stage in which an operation takes an operand, where it says so itself: a transfer, a sum, a broadcast.
  static std::optional<int64_t> takenIn(mlir::OpOperand &operand);
  /// The stages of the operands that are no scalars, and of those that are, each ascending.
  struct OperandStages {
    llvm::SmallVector<int64_t, 2> tensors, scalars;
  };
  OperandStages operandStages(mlir::Operation *op) const;
  /// Whether an operation adds scalars of several stages, alone or together with the additions that only it uses.
  bool isCombination(mlir::Operation *op) const { return combinations.contains(op); }
  /// Whether an operation is part of such a combination, and not its last addition.
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

/// Whether a value is a tensor without dimensions.
bool isScalar(mlir::Value value);

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_STAGEDATAFLOW_H
