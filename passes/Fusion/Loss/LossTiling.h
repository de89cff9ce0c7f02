//===- LossTiling.h - A loss behind a linear layer, computed for some positions at a time
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_FUSION_LOSS_LOSSTILING_H
#define BOWLINE_PASSES_FUSION_LOSS_LOSSTILING_H

#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

namespace bowline {

/// `softmax_cross_entropy(hidden x weight, labels)`, and where the program has them, the gradient with respect to the
/// logits and every product of it. Logits are the largest tensor of a language model: nothing but these operations
/// needs them, and these can be done for some positions after the others. Operations that hide classes of padding
/// before the loss are part of the pattern. Where ranks divide the classes, so are the operations that combine a number
/// per position between the loss and its gradient.
class LossTiling {
public:
  /// The pattern around `loss`; none where something else reads the logits or their gradient, or where a value that
  /// the gradient needs is computed after the loss.
  static std::optional<LossTiling> match(graph::SoftmaxCrossEntropyOp loss);

  int64_t positions() const { return positionCount; }
  /// Bytes of the logits of one position.
  int64_t bytesPerPosition() const;

  /// Whether ranks combine something between the loss and its gradient: then so they do for each tile.
  bool communicates() const { return !statistics.empty(); }

  /// Rewrites the pattern into `tiles` copies of itself on equal parts of the positions, the last one possibly smaller,
  /// one after another. The gradient of the weights is their sum in f32, in order. The matched operations are erased.
  void tile(int64_t tiles);

private:
  struct Product {
    graph::DotGeneralOp op;
    /// Has a row for every position; otherwise it is summed over the positions.
    bool perPosition;
  };

  bool matchLogits(mlir::Value value);
  mlir::Value tileLogits(mlir::OpBuilder &builder, mlir::IRMapping &tile, mlir::Value value);
  bool matchGradient(graph::SoftmaxCrossEntropyGradOp op);
  bool matchStatistics(mlir::Value logsumexp);
  bool isPerPosition(mlir::Operation *op);
  mlir::Value tileStatistics(mlir::OpBuilder &builder, mlir::IRMapping &tile,
                             llvm::function_ref<mlir::Value(mlir::Value)> part);
  bool matchProduct(graph::DotGeneralOp op);
  bool isDefinedBefore(mlir::Value value) const;
  void moveConstants(mlir::Operation *reader);

  graph::DotGeneralOp logits;
  /// Operations that make the loss's operand of the logits, each class in the same way at all positions; users first.
  llvm::SetVector<mlir::Operation *> masks;
  graph::SoftmaxCrossEntropyOp loss;
  graph::SoftmaxCrossEntropyGradOp gradient;
  llvm::SmallVector<Product> products;
  /// Operations that make the gradient's logsumexp of the loss's results, in order.
  llvm::SmallVector<mlir::Operation *> statistics;
  int64_t positionCount = 1;
};

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_LOSS_LOSSTILING_H
