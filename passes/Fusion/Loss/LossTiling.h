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

/// The pattern `softmax_cross_entropy(hidden x weight, labels)`, in training with the gradient of the logits and all
/// products that read it. Logits are the largest tensor of a language model, but only this pattern uses them, so it can
/// run on one tile of positions after another. The pattern includes operations that mask padded classes before the
/// loss. If ranks shard the classes, it includes the operations between the loss and its gradient that combine
/// statistics per position over ranks.
class LossTiling {
public:
  /// The pattern around `loss`; none if an operation outside of the pattern reads the logits or their gradient, or if a
  /// value that the gradient needs is computed after the loss.
  static std::optional<LossTiling> match(graph::SoftmaxCrossEntropyOp loss);

  int64_t positions() const { return positionCount; }
  /// Bytes of the logits of one position.
  int64_t bytesPerPosition() const;

  /// Returns whether ranks combine statistics between the loss and its gradient. If so, they communicate once per tile.
  bool communicates() const { return !statistics.empty(); }

  /// Replaces the pattern by `tiles` copies, one after another, each on an equal part of the positions; the last part
  /// may be smaller. The gradient of the weights is the sum of the tiles' gradients, in f32 and in order.
  void tile(int64_t tiles);

private:
  struct Product {
    graph::DotGeneralOp op;
    /// Whether the product has a row per position; otherwise it sums over the positions.
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
  /// Operations between the logits and the loss that treat a class equally at all positions; users first.
  llvm::SetVector<mlir::Operation *> masks;
  graph::SoftmaxCrossEntropyOp loss;
  graph::SoftmaxCrossEntropyGradOp gradient;
  llvm::SmallVector<Product> products;
  /// Operations that compute the gradient's logsumexp from the results of the loss, in order.
  llvm::SmallVector<mlir::Operation *> statistics;
  int64_t positionCount = 1;
};

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_LOSS_LOSSTILING_H
