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

/// Flat shards of tensors over a mesh axis of n ranks. The elements in row-major order are padded with zeros at the end
/// to a multiple of n, and rank i along the axis holds the i-th of n equal blocks. A shard has one dimension. Tensors
/// of any shape can be divided so.
class FlatShards {
public:
  FlatShards(dist::MeshOp mesh, mlir::StringAttr axis) : axis(axis), count(mesh.getSize(axis)) {}

  mlir::StringAttr getAxis() const { return axis; }
  /// The number of ranks along the axis.
  int64_t getCount() const { return count; }

  mlir::RankedTensorType shardOf(mlir::RankedTensorType whole) const;
  bool isPadded(mlir::RankedTensorType whole) const { return whole.getNumElements() % count != 0; }

  /// Flattens \p whole to one dimension and pads it: the concatenation of all shards.
  mlir::Value flatten(mlir::ImplicitLocOpBuilder &builder, mlir::Value whole) const;
  /// Takes this rank's shard of a tensor of which all ranks hold a copy, without communication.
  mlir::Value slice(mlir::ImplicitLocOpBuilder &builder, mlir::Value whole) const;
  /// Draws only this rank's shard of the random values. Null if the shard is not a contiguous range of the global
  /// tensor's elements: an inner dimension is sharded, or the first one is and n does not divide the local size.
  mlir::Value draw(mlir::ImplicitLocOpBuilder &builder, graph::RandomOp random) const;
  /// This rank's shard of the sum of the ranks' tensors.
  mlir::Value reduceScatter(mlir::ImplicitLocOpBuilder &builder, mlir::Value summand, llvm::StringRef why) const;
  /// The whole tensor, gathered from every rank's shard. \p gather is set to the collective, for further attributes.
  mlir::Value gather(mlir::ImplicitLocOpBuilder &builder, mlir::Value shard, llvm::ArrayRef<int64_t> shape,
                     llvm::StringRef why, dist::AllGatherOp *gather = nullptr) const;

private:
  mlir::ArrayAttr axes() const { return mlir::ArrayAttr::get(axis.getContext(), {axis}); }

  mlir::StringAttr axis;
  int64_t count;
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_ZERO_FLATSHARDS_H
