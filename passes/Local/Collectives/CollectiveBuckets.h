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

/// Replaces collectives of a block by `dist.bucket`: all-reduces, all-gathers and reduce-scatters along dimension 0 of
/// one kind and reduction, over the same axes, of one element type and with the same further attributes. They join in
/// program order, so that gradients are together that become ready one after another. A bucket ends before a collective
/// that depends on a member, or with which its tensors (before they are scattered, after they are gathered) would have
/// more than the given bytes, or a sixteenth of all that could join it if that is less and at least kLeastBytes: a
/// bucket is exchanged while the next one is computed, so that there have to be several. Collectives along the axis of
/// the stages stay as they are, as they have to fit the order of the other stages' programs. A bucket stands where its
/// last member stood; operations that depend on earlier members move behind it.
///
/// A bucket of gathers of parameters (`dist.prefetch`) stands where its first member stood, and the operands of the
/// others are computed in front of it. If the users of the first one moved behind the last one instead, the gathers of
/// other buckets, with the parameters of all layers between these, would be alive at one time.
class CollectiveBuckets {
public:
  explicit CollectiveBuckets(int64_t bytes) : most(bytes) {}
  /// Whether two may be in one bucket, however few bytes one may have.
  bool run(mlir::Block &block);

  /// The bytes beside whose transfer latency costs little.
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
