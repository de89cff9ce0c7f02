//===- CollectiveBuckets.h - Independent collectives become one operation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_COLLECTIVES_COLLECTIVEBUCKETS_H
#define BOWLINE_PASSES_LOCAL_COLLECTIVES_COLLECTIVEBUCKETS_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseSet.h"

namespace bowline {

/// Joins collectives of a block into `dist.bucket`. Members are all-reduces, or all-gathers or reduce-scatters along
/// dimension 0, with equal kind, reduction, axes, element type and other attributes. They join in program order, so
/// that the gradients of a bucket become ready one after another. A bucket ends before a collective that depends on a
/// member, and before one with which its whole tensors would exceed the limit: the given bytes, or the larger of
/// kLeastBytes and a sixteenth of all candidates if that is less. So there are several buckets, and one is exchanged
/// while the next is computed. Collectives along the stages' axis never join, because other stages must issue them in
/// the same order. A bucket takes the place of its last member; operations that depend on earlier members move behind
/// it.
///
/// A bucket of parameter gathers (`dist.prefetch`) takes the place of its first member instead, and the operands of the
/// other members move in front of it. At the place of the last member, the users of the first member would move behind
/// it, and the gathered parameters of all layers in between would be alive at once.
class CollectiveBuckets {
public:
  explicit CollectiveBuckets(int64_t bytes) : most(bytes) {}
  /// Forms the buckets of a block. Returns whether it has two collectives that may join, regardless of the byte limit.
  bool run(mlir::Block &block);

  /// The size from which on the transfer time of a collective outweighs its latency.
  static constexpr int64_t kLeastBytes = 1 << 20;

private:
  int64_t limitFor(mlir::Block &block, mlir::Attribute key) const;

  /// A key that is equal for collectives that may join; null for other operations.
  static mlir::Attribute keyOf(mlir::Operation *op);

  static bool isOfParameters(mlir::Attribute key);
  /// Makes the buckets of one key, each in the place of its first member.
  void gatherEarly(mlir::Block &block, mlir::Attribute key);
  /// Returns the operations behind the first member that compute operands of \p op, in order; nothing where one of them
  /// cannot move up.
  std::optional<llvm::SmallVector<mlir::Operation *>> movableInputs(mlir::Operation *op) const;
  static bool isWrittenBetween(mlir::Operation *first, graph::ReadOp read);

  bool isDependent(mlir::Operation *op) const;
  void addMember(mlir::Operation *op);
  void addDependent(mlir::Operation *op);
  /// Replaces the members by a bucket, if there are several, and begins anew.
  void close();

  int64_t most, limit = 0, bytes = 0;
  bool linksMove = false; ///< whether an operation between stages is among the dependents
  bool anyMayJoin = false;
  bool isEarly = false; ///< whether buckets stand where their first member stood
  llvm::SmallVector<mlir::Operation *> members, dependents;
  size_t dependentsBeforeLast = 0;
  llvm::DenseSet<mlir::Operation *> involved;    ///< members and dependents
  llvm::DenseSet<mlir::Attribute> read, written; ///< variables that dependents read and write
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_COLLECTIVES_COLLECTIVEBUCKETS_H
