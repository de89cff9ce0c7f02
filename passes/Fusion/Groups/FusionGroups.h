//===- FusionGroups.h - Which operations are computed together
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_FUSION_GROUPS_FUSIONGROUPS_H
#define BOWLINE_PASSES_FUSION_GROUPS_FUSIONGROUPS_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace bowline {

/// Partitions the operations of a block that become generated code into groups. A group can be computed at the position
/// of its last operation, because no operation outside of the group before that position uses its results.
class FusionGroups {
public:
  /// One operation per group unless `merge`.
  FusionGroups(mlir::Block &block, bool merge);

  struct Group {
    /// The operations of the group, in block order.
    llvm::SmallVector<mlir::Operation *> operations;
    /// The shape whose rows the group computes.
    llvm::SmallVector<int64_t> domain;
  };

  /// All groups, in the order of their last operations.
  llvm::SmallVector<const Group *> groups() const;

  /// Returns whether an operation becomes generated code.
  static bool isFusible(mlir::Operation *op);

  /// Returns whether an operation belongs to no single group: each group that reads its result recomputes it
  /// (Repeated), or its only reader absorbs it into its loads (Absorbed).
  static bool isRepeated(mlir::Operation *op);

private:
  bool canMerge(llvm::ArrayRef<size_t> candidates, mlir::Operation *op, llvm::ArrayRef<int64_t> domain) const;
  void place(mlir::Operation *op);
  void collectProducers(mlir::Operation *op, llvm::SmallVectorImpl<size_t> &producers) const;
  std::optional<size_t> findSibling(mlir::Operation *op, llvm::ArrayRef<int64_t> domain) const;
  bool usedBefore(mlir::Operation *member, mlir::Operation *op, llvm::ArrayRef<size_t> inside) const;

  bool merge;
  llvm::SmallVector<Group> all;
  llvm::DenseMap<mlir::Operation *, size_t> groupOf;
  llvm::DenseMap<mlir::Operation *, size_t> position;
};

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_GROUPS_FUSIONGROUPS_H
