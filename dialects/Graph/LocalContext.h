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

/// Shardings and ranks, as an operation that becomes local sees them. All types are those of one rank already.
class LocalContext {
public:
  /// Names of mesh axes, the outermost first.
  using Axes = llvm::ArrayRef<mlir::StringAttr>;

  virtual ~LocalContext() = default;

  /// The axes that divide a dimension of an operand or result; none where each rank has all of it.
  virtual Axes axesOf(mlir::Value value, int64_t dim) = 0;
  /// The number of ranks along these axes, which is that of shards.
  virtual int64_t countAlong(Axes axes) = 0;
  /// The number of this rank's shard along these axes, from 0, as a tensor<i32>.
  virtual mlir::Value placeAlong(mlir::ImplicitLocOpBuilder &builder, Axes axes) = 0;
  /// Combines the values of all ranks along the axes, element by element; `why` is a part of messages.
  virtual mlir::Value combine(mlir::ImplicitLocOpBuilder &builder, ReduceKind kind, mlir::Value value, Axes axes,
                              const llvm::Twine &why) = 0;
  /// Puts `other` in the place of a result for all users but `except`.
  virtual void replace(mlir::Value result, mlir::Value other,
                       const llvm::SmallPtrSetImpl<mlir::Operation *> &except) = 0;
};

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_LOCALCONTEXT_H
