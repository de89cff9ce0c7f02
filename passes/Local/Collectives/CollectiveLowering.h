//===- CollectiveLowering.h - Collectives as a communicator executes them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_COLLECTIVES_COLLECTIVELOWERING_H
#define BOWLINE_PASSES_LOCAL_COLLECTIVES_COLLECTIVELOWERING_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace bowline {

/// Lowers collectives to the forms that a communicator executes: ranks exchange contiguous blocks of equal size. So the
/// dimension along which blocks are split or concatenated becomes the first one. This takes at most one transpose on
/// each side, and none if all dimensions before it are 1.
///
/// Afterwards a function has only these operations of `dist`:
///   all_reduce      over axes in the order of the mesh
///   all_gather      dim 0
///   reduce_scatter  dim 0
///   all_to_all      split 0 concat 0
///   coordinate
/// each over axes with more than one rank. A dist.slice becomes a graph.gather of rows, which copies only the bytes of
/// its result.
class CollectiveLowering {
public:
  explicit CollectiveLowering(dist::MeshOp mesh) : mesh(mesh) {}
  void run(graph::FuncOp function);

private:
  void normalizeAxes(mlir::Operation *op);
  mlir::Value lower(mlir::ImplicitLocOpBuilder &builder, dist::AllGatherOp op);
  mlir::Value lower(mlir::ImplicitLocOpBuilder &builder, dist::ReduceScatterOp op);
  mlir::Value lower(mlir::ImplicitLocOpBuilder &builder, dist::AllToAllOp op);
  mlir::Value lower(mlir::ImplicitLocOpBuilder &builder, dist::SliceOp op);
  int64_t ranksOf(mlir::ArrayAttr axes);

  dist::MeshOp mesh;
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_COLLECTIVES_COLLECTIVELOWERING_H
