//===- LocalForms.h - Operations whose part is more than the operation on local types
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_SHARDING_LOCALFORMS_H
#define BOWLINE_PASSES_SHARDING_LOCALFORMS_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <functional>

namespace bowline {

/// The local forms that FactorRule.h states. Each takes an operation whose types are local already, and the axes that
/// cut the dimension in question; without axes there is nothing to do.
class LocalForms {
public:
  using Axes = llvm::ArrayRef<mlir::StringAttr>;

  /// `replaced` gets to know the values that take the place of an operation's results.
  using Replaced = std::function<void(mlir::Value result, mlir::Value other)>;

  LocalForms(dist::MeshOp mesh, Replaced replaced) : mesh(mesh), replaced(std::move(replaced)) {}

  /// Draws the values at their places in the whole.
  void localize(graph::RandomOp random, dist::ShardingAttr sharding);
  /// Counts from the first index of the part.
  void localize(graph::IotaOp iota, Axes counted);
  /// Rows that this rank does not have are zero: the results of all ranks add up.
  void localize(graph::GatherOp gather, Axes rows);
  /// Updates of rows that this rank does not have are dropped.
  void localize(graph::ScatterAddOp scatter, Axes rows);
  /// Per position, ranks exchange the logsumexp of their classes (its maximum, then the sum), and add up the logit of
  /// the label, which one of them has. No rank holds the logits of all classes (Shoeybi et al., "Megatron-LM", 2019,
  /// 3).
  void localize(graph::SoftmaxCrossEntropyOp loss, Axes classes);
  void localize(graph::SoftmaxCrossEntropyGradOp grad, Axes classes);

private:
  mlir::Value placeAlong(mlir::ImplicitLocOpBuilder &builder, Axes axes);
  mlir::Value shifted(mlir::ImplicitLocOpBuilder &builder, mlir::Value indices, Axes axes, int64_t part);
  mlir::Value ownLabels(mlir::ImplicitLocOpBuilder &builder, mlir::Value labels, Axes axes, int64_t part);

  void replace(mlir::Value result, mlir::Value other, const llvm::SmallPtrSetImpl<mlir::Operation *> &except);

  dist::MeshOp mesh;
  Replaced replaced;
};

} // namespace bowline

#endif // BOWLINE_PASSES_SHARDING_LOCALFORMS_H
