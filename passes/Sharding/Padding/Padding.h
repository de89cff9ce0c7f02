//===- Padding.h - Dimensions grow until their axes divide them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_SHARDING_PADDING_PADDING_H
#define BOWLINE_PASSES_SHARDING_PADDING_PADDING_H

#include "dialects/Dist/DistOps.h"
#include "passes/Analysis/DimensionClasses.h"
#include "llvm/ADT/MapVector.h"

#include <map>

namespace bowline {

/// Pads every dimension of a variable that the axes of its sharding do not divide to the next size that they divide,
/// and all dimensions of its class with it (DimensionClasses.h). The variable keeps its old shape as `dist.view`.
///
/// Results do not change, and the padding of every variable is always zero. The pass tracks, per operation, the one
/// number that fills the padding of each value, if it is known. Padding of variables is zero, and stays zero through
/// products, silu, gelu and AdamW's update. Where an operation needs another number in the padding than the known one,
/// the pass inserts a select that puts it there:
///
///  - zero, where padding would be added into a sum or written to a variable;
///  - a finite number so low that its exponential is zero, for the logits of classes that do not exist;
///  - the largest integer, for row indices and offsets that a program computes and that would point into padding. So
///    the check on the device, which only knows the padded size of the table, still rejects them.
///
/// Functions return values without padding.
class Padding {
public:
  /// Returns whether a variable has a dimension that its axes do not divide.
  static bool isNeeded(mlir::ModuleOp module, dist::MeshOp mesh);

  /// Fails with a diagnostic at a variable that grew, with its class, more than its own axes require. A plan cannot
  /// express this, because it derives the padding of a shard from the axes of the shard's own layout.
  static llvm::LogicalResult verifyShards(mlir::ModuleOp module, dist::MeshOp mesh);

  /// repeatFreeValues must have been called for the module before.
  Padding(mlir::ModuleOp module, dist::MeshOp mesh) : module(module), mesh(mesh), classes(module) {}

  /// Fails with a diagnostic at the variable, without a change, if a dimension cannot grow. The diagnostic names the
  /// operation that prevents it and the nearest sizes that need no padding.
  llvm::LogicalResult run();

private:
  using Class = DimensionClasses::Class;
  /// The size to which a class of dimensions must grow, and the dimension of a variable that asks for it.
  struct Growth {
    int64_t to;
    int64_t multiple; ///< all tensors that have the dimension need a size that this divides
    mlir::Operation *variable;
    int64_t dim;
  };

  void collect();
  llvm::LogicalResult check(Class grown, const Growth &growth);
  void findObstacles();
  void grow();
  void growVariable(graph::Variable variable);
  void growValues(graph::FuncOp function);

  mlir::ModuleOp module;
  dist::MeshOp mesh;
  DimensionClasses classes;
  llvm::MapVector<Class, Growth> growths;
  /// For each class that cannot grow, the reason.
  llvm::DenseMap<Class, std::string> obstacles;
};

/// Follows the number that the padding of each value holds through one function whose types have grown, and inserts the
/// selects and slices that Padding promises.
class NeutralPadding {
public:
  /// For each value that has grown, the sizes that its dimensions had before.
  using OldShapes = llvm::DenseMap<mlir::Value, llvm::SmallVector<int64_t>>;

  explicit NeutralPadding(OldShapes &oldShapes) : oldShapes(oldShapes) {}
  void run(graph::FuncOp function);

private:
  using Number = std::optional<double>;
  class Context;

  bool isGrown(mlir::Value value, int64_t dim) const;
  Number numberIn(mlir::Value value, int64_t dim) const;
  void require(mlir::OpOperand &operand, int64_t dim, double number);
  mlir::Value mask(mlir::Value value, int64_t dim, double number);
  void visit(mlir::Operation *op);
  void excludePaddedRows(graph::KernelModel op);
  void restore(graph::ReturnOp op);

  OldShapes &oldShapes;
  /// The number that the padding of a value's dimension holds; no entry where nothing is known.
  std::map<std::pair<const void *, int64_t>, double> numbers;
  std::map<std::tuple<const void *, int64_t, double>, mlir::Value> masks;
};

} // namespace bowline

#endif // BOWLINE_PASSES_SHARDING_PADDING_PADDING_H
