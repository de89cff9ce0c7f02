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

/// Returns whether an operation broadcasts a scalar, so that its result may have any shape and any sharding.
bool repeatsScalar(mlir::Operation *op);

/// Clones, for every user, each value that does not constrain its dimensions: a broadcast scalar, and values computed
/// from such values alone. If users shared it, their unrelated dimensions would fall into one class.
void repeatFreeValues(mlir::ModuleOp module);

/// Partitions the dimensions of all values and variables into classes that must change size or sharding together.
/// Two dimensions share a class if each is exactly one factor of an operation's rule and the factor is the same, or
/// if one is of a variable and the other of a value read from it. The columns of an MLP's weights, of its
/// activations, of their gradients and of the optimizer's states are one class. Each use of a constant with equal
/// elements counts as a separate tensor, because its uses may be unrelated; repeatFreeValues achieves the same for
/// other values.
class DimensionClasses {
public:
  using Class = unsigned;

  explicit DimensionClasses(mlir::ModuleOp module);

  Class of(llvm::StringRef variable, int64_t dim);
  Class of(mlir::Value value, int64_t dim);
  /// The class of a dimension of an operand; for a constant of equal elements, the class at this use.
  Class of(mlir::OpOperand &operand, int64_t dim);

  /// The dimensions of a tensor that are in \p wanted, in order.
  llvm::SmallVector<int64_t> dimsIn(Class wanted, mlir::Value value);
  llvm::SmallVector<int64_t> dimsIn(Class wanted, mlir::OpOperand &operand);

  /// The classes of all dimensions of an operation's operands and results.
  llvm::SmallSetVector<Class, 8> classesOf(mlir::Operation *op);

  /// Returns why dimensions of the class cannot change at \p op, as the end of a sentence: the operation has no rule,
  /// keeps the dimension whole, or merges it into another dimension. Returns an empty string if they can change or,
  /// with \p pads, grow by padding.
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

/// The only factor of a dimension whose size is not 1; none if there are several such factors or none.
std::optional<int64_t> soleFactor(const graph::FactorRule &rule, llvm::ArrayRef<int64_t> factors);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_DIMENSIONCLASSES_H
