//===- Layout.h - From the tensor of a checkpoint to the part that each rank holds
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_DIST_LAYOUT_H
#define BOWLINE_DIALECTS_DIST_LAYOUT_H

#include "dialects/Dist/DistOps.h"

namespace bowline::dist {

/// The shards of a variable that ranks hold, as the variable's attributes state it after `global-to-local`. These steps
/// lead from the tensor in a checkpoint to a rank's shard:
///
///   1. its shape is `global` (`dist.global_shape`; else `view`);
///   2. the same elements in row-major order have the shape `view` (`dist.view`; else `global`);
///   3. zeros are added at the end of every dimension, up to the shape `padded`;
///   4. dimension d is sharded equally over the axes `axes[d]` (`dist.sharding`), the first one outermost: each
///      rank has a shard of shape `local`, which is the variable's type unless
///   5. that shard is sharded further over the axes `flatAxes` (`dist.flat_axes`): its elements in row-major order and
///      zeros at the end are split into equal shards of `shard` elements, the variable's type.
///
/// Ranks along the other axes of the mesh hold equal copies. A variable without these attributes is whole everywhere.
struct Layout {
  llvm::SmallVector<int64_t> global, view, padded, local;
  llvm::SmallVector<llvm::SmallVector<mlir::StringAttr>> axes;
  /// The axes over which the flat shards of ZeRO are divided (step 5 of the comment above), the first one outermost;
  /// empty without flat shards.
  llvm::SmallVector<mlir::StringAttr> flatAxes;
  int64_t shard = 0, shards = 1;
  /// The axes over which each rank holds one summand of a gradient accumulator. Accumulators are in no checkpoint.
  llvm::SmallVector<mlir::StringAttr> unreduced;

  /// The layout of a `graph.param` or `graph.state`. Fails with a diagnostic at it where its attributes contradict each
  /// other, its type, or the module's mesh.
  static llvm::FailureOr<Layout> of(mlir::Operation *variable);

  /// Returns whether a rank may hold zeros that no checkpoint has.
  bool isPadded() const;
  bool isFlat() const { return !flatAxes.empty(); }
};

} // namespace bowline::dist

#endif // BOWLINE_DIALECTS_DIST_LAYOUT_H
