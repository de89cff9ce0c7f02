//===- FlatShards.h - Equal parts of a tensor of any shape
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_ZERO_FLATSHARDS_H
#define BOWLINE_PASSES_LOCAL_ZERO_FLATSHARDS_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace bowline {

/// Shards of tensors over a mesh axis of n ranks: the elements in row-major order, zeros at the end up to a multiple of
/// n, and of that the i-th of n equal parts for the rank at place i. Any tensor divides so; a shard has one dimension.
class FlatShards {
public:
  FlatShards(dist::MeshOp mesh, mlir::StringAttr axis) : axis(axis), count(mesh.getSize(axis)) {}

  mlir::StringAttr getAxis() const { return axis; }
  /// Ranks along the axis.
  int64_t getCount() const { return count; }

  mlir::RankedTensorType shardOf(mlir::RankedTensorType whole) const;
  bool isPadded(mlir::RankedTensorType whole) const { return whole.getNumElements() % count != 0; }

  /// All shards of \p whole one after the other.
  mlir::Value flatten(mlir::ImplicitLocOpBuilder &builder, mlir::Value whole) const;
  /// This rank's shard of a tensor that all ranks have.
  mlir::Value slice(mlir::ImplicitLocOpBuilder &builder, mlir::Value whole) const;
  /// This rank's shard of random values, drawn without the others: null where a shard is no run of the whole tensor's
  /// elements, because that is cut along an inner dimension or its pieces do not divide.
  mlir::Value draw(mlir::ImplicitLocOpBuilder &builder, graph::RandomOp random) const;
  /// This rank's shard of the sum of the ranks' tensors.
  mlir::Value reduceScatter(mlir::ImplicitLocOpBuilder &builder, mlir::Value summand, llvm::StringRef why) const;
  /// The tensor of which every rank has its shard. \p gather is the collective, for further attributes.
  mlir::Value gather(mlir::ImplicitLocOpBuilder &builder, mlir::Value shard, llvm::ArrayRef<int64_t> shape,
                     llvm::StringRef why, dist::AllGatherOp *gather = nullptr) const;

private:
  mlir::ArrayAttr axes() const { return mlir::ArrayAttr::get(axis.getContext(), {axis}); }

  mlir::StringAttr axis;
  int64_t count;
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_ZERO_FLATSHARDS_H
