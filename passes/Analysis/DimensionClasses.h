//===- DimensionClasses.h - Which dimensions of a module's tensors are one
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_DIMENSIONCLASSES_H
#define BOWLINE_PASSES_ANALYSIS_DIMENSIONCLASSES_H

#include "dialects/Graph/FactorRule.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"

namespace bowline {

/// Whether an operation repeats a scalar along new dimensions, so that its result may have any shape and any sharding.
bool repeatsScalar(mlir::Operation *op);

/// Gives every user a copy of its own of a value that says nothing about its dimensions: a scalar that is repeated, and
/// values computed from such values alone. Users of one shape share them, which would make their dimensions one.
void repeatFreeValues(mlir::ModuleOp module);

/// Puts dimensions of values and variables that must change together into one class: those that are the same factor of
/// an operation and no other factor beside it, and those of a variable and of values read from it. The columns of an
/// MLP's weights, of its activations, of their gradients and of the optimizer's states are one class.
///
/// A constant of equal elements may have many uses of different meanings: it is a tensor of its own at each of them.
/// repeatFreeValues makes sure of the same for other values.
class DimensionClasses {
public:
  using Class = unsigned;

  explicit DimensionClasses(mlir::ModuleOp module);

  Class of(llvm::StringRef variable, int64_t dim);
  Class of(mlir::Value value, int64_t dim);
  /// The class of a dimension of an operand; for a constant, that at this use.
  Class of(mlir::OpOperand &operand, int64_t dim);

  /// The dimensions of a tensor that are in \p wanted, in order.
  llvm::SmallVector<int64_t> dimsIn(Class wanted, mlir::Value value);
  llvm::SmallVector<int64_t> dimsIn(Class wanted, mlir::OpOperand &operand);

  /// The classes of all dimensions of an operation's operands and results.
  llvm::SmallSetVector<Class, 8> classesOf(mlir::Operation *op);

  /// The reason why dimensions of the class cannot change at \p op, as the end of a sentence: the operation has no
  /// rule, keeps the dimension whole, or makes it a part of another one. Empty if they can; with \p pads, if they can
  /// grow by padding.
  std::string findObstacle(mlir::Operation *op, Class wanted, bool pads = false);

private:
  using Node = unsigned;

  void connect(mlir::Operation *op);
  Node nodesOf(const void *key, int64_t rank);
  /// The first node of a tensor; its dimensions follow.
  Node nodeOf(mlir::Value value);
  Node nodeOf(mlir::OpOperand &operand);
  Node nodeOf(llvm::StringRef variable, int64_t rank);
  Class find(Node node);
  void join(Node a, Node b);
  /// The first nodes of operands and results, in the order of the factor rule; none for values that are no tensors.
  llvm::SmallVector<std::optional<Node>> tensorsOf(mlir::Operation *op);

  mlir::ModuleOp module;
  llvm::DenseMap<const void *, Node> first;
  llvm::StringMap<Node> variables;
  std::vector<Node> parents;
};

/// The only factor of a dimension beside those of size 1; none if there are several or none.
std::optional<int64_t> soleFactor(const graph::FactorRule &rule, llvm::ArrayRef<int64_t> factors);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_DIMENSIONCLASSES_H
