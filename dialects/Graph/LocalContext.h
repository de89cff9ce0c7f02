//===- LocalContext.h - Facts that an operation may ask about the rank that computes a part of it
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_LOCALCONTEXT_H
#define BOWLINE_DIALECTS_GRAPH_LOCALCONTEXT_H

#include "dialects/Graph/GraphAttrs.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace bowline::graph {

/// The interface by which ShardingModel::localize queries shardings and ranks. All types are already local.
class LocalContext {
public:
  /// Names of mesh axes, the outermost first.
  using Axes = llvm::ArrayRef<mlir::StringAttr>;

  virtual ~LocalContext() = default;

  /// The axes that shard a dimension of an operand or result; empty if each rank holds the whole dimension.
  virtual Axes axesOf(mlir::Value value, int64_t dim) = 0;
  /// The number of ranks along these axes, which is also the number of shards.
  virtual int64_t countAlong(Axes axes) = 0;
  /// The index of this rank's shard along these axes, from 0, as a tensor<i32>.
  virtual mlir::Value placeAlong(mlir::ImplicitLocOpBuilder &builder, Axes axes) = 0;
  /// Inserts an all-reduce of `value` over the ranks along the axes; `why` is its reason in messages.
  virtual mlir::Value combine(mlir::ImplicitLocOpBuilder &builder, ReduceKind kind, mlir::Value value, Axes axes,
                              const llvm::Twine &why) = 0;
  /// Replaces all uses of `result` by `other`, except those in the operations `except`.
  virtual void replace(mlir::Value result, mlir::Value other,
                       const llvm::SmallPtrSetImpl<mlir::Operation *> &except) = 0;
};

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_LOCALCONTEXT_H
