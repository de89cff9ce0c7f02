//===- RankContext.h - Answers to operations about the rank that computes a part of them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_TENSORS_RANKCONTEXT_H
#define BOWLINE_PASSES_LOCAL_TENSORS_RANKCONTEXT_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/LocalContext.h"

#include <functional>

namespace bowline {

/// Implements graph::LocalContext for a mesh: the index of a rank's shard comes from `dist.coordinate`, and `combine`
/// inserts an all-reduce.
class RankContext final : public graph::LocalContext {
public:
  using ShardingOf = std::function<dist::ShardingAttr(mlir::Value)>;
  /// Is called with the values that replace an operation's results.
  using Replaced = std::function<void(mlir::Value result, mlir::Value other)>;

  RankContext(dist::MeshOp mesh, ShardingOf shardingOf, Replaced replaced)
      : mesh(mesh), shardingOf(std::move(shardingOf)), replaced(std::move(replaced)) {}

  Axes axesOf(mlir::Value value, int64_t dim) override { return shardingOf(value).getAxes(dim); }
  int64_t countAlong(Axes axes) override { return mesh.getSize(axes); }
  mlir::Value placeAlong(mlir::ImplicitLocOpBuilder &builder, Axes axes) override;
  mlir::Value combine(mlir::ImplicitLocOpBuilder &builder, graph::ReduceKind kind, mlir::Value value, Axes axes,
                      const llvm::Twine &why) override;
  void replace(mlir::Value result, mlir::Value other, const llvm::SmallPtrSetImpl<mlir::Operation *> &except) override;

private:
  dist::MeshOp mesh;
  ShardingOf shardingOf;
  Replaced replaced;
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_TENSORS_RANKCONTEXT_H
