//===- SegmentSchedule.h - The order in which the commands of a segment are issued
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_OVERLAP_SEGMENTSCHEDULE_H
#define BOWLINE_PASSES_OVERLAP_SEGMENTSCHEDULE_H

#include "passes/Analysis/CommandCost.h"
#include "llvm/ADT/DenseMap.h"

#include <deque>
#include <set>
#include <vector>

namespace bowline {

/// Whether ranks of other stages have a part in a command: its communicator lies along `stage.axis`.
bool isBetweenStages(mlir::Operation *command, mlir::SymbolTable &symbols);

/// Whether the commands of a segment can be scheduled: all are on the first stream, and none is an event.
bool isFree(plan::SegmentOp segment);

/// List scheduling (Graham, 1969) of one segment: stream 0 computes, every communicator has a stream, commands take the
/// time that the cost model says.
///
/// Reductions are issued as soon as their operands are there. A gather is issued when it comes up in the given order,
/// or before that when no more than its prefetch distance (`dist.prefetch`, else 1) of gathers on its stream are under
/// way or done and not used yet: that bounds the memory that waits. Commands that compute stay in their order, but for
/// one that would have to wait for communication: then the next ones that need not may pass it, up to kWindow of them.
/// Transfers between stages stay on their stream and in their order, which is that of ranks with other programs.
///
/// A value that only a reduction still reads, such as a whole gradient of which ranks keep shards, is alive until a
/// command that computes waits for the reduction. So the next command that computes waits for the oldest ones while
/// more than twice the largest of such values would wait to be reduced. A stream that has so much to do stays busy all
/// the same.
///
/// The result depends on nothing but the segment, so it is the same on all ranks.
class SegmentSchedule {
public:
  /// The segment is free. `streamOf` has a stream per communicator; all other commands stay on stream 0. `mostPrefetch`
  /// bounds every prefetch distance.
  SegmentSchedule(plan::SegmentOp segment, mlir::SymbolTable &symbols, CommandCost &cost,
                  const llvm::StringMap<int64_t> &streamOf, int64_t mostPrefetch);

  /// Finds the order.
  void run();

  /// Seconds, all commands one after the other and as scheduled.
  double serialSeconds() const { return serial; }
  double seconds() const { return finish; }

  /// Gives the commands of the segment their order and streams, and lets every communication begin no earlier than the
  /// commands that compute in front of it are over; uses events from `firstEvent` on and returns how many.
  int64_t apply(int64_t firstEvent);

private:
  static constexpr size_t kWindow = 32;
  static constexpr int64_t kReductionsInFlight = 2;

  enum class Kind { Compute, Reduction, Gather };
  struct Node {
    mlir::Operation *op;
    Kind kind;
    int64_t stream;
    double seconds;
    int64_t prefetch = 0;
    int64_t frees = 0; // bytes of buffers that a reduction is the last one to use
    std::vector<unsigned> before, after;
    unsigned waitsFor = 0;
    double ready = 0, end = 0; // times in the model; at `ready` all that it needs is there
    bool isIssued = false, isUnused = false;
  };
  struct Stream {
    std::set<unsigned> reductions, gathers; // ready to be issued
    double end = 0;
    int64_t unused = 0; // gathers that were issued, and nothing used yet
  };

  void addNode(mlir::Operation *op, const llvm::StringMap<int64_t> &streamOf, CommandCost &cost, int64_t mostPrefetch);
  void addOrders(mlir::SymbolTable &symbols);
  int64_t bytesFreedBy(plan::CollectiveOp reduction) const;
  /// Lets a command that computes wait for the oldest reductions until the others are within the bound.
  void waitForReductions(unsigned compute);
  void addReady(unsigned node);
  void issue(unsigned node);
  /// Issues one communication, if one is due.
  bool issueCommunication();
  bool isDue(unsigned gather) const;
  unsigned chooseCompute() const;
  /// The first command that was not issued yet.
  unsigned frontier() const;

  plan::SegmentOp segment;
  std::vector<Node> nodes;
  std::vector<Stream> streams;
  std::set<unsigned> computeReady;
  std::vector<unsigned> order;
  std::deque<unsigned> reducing;                             // reductions for which nothing that computes waits yet
  llvm::DenseMap<unsigned, std::vector<unsigned>> waitedFor; // by command that computes: reductions
  int64_t reducingBytes = 0, mostReducing = 0;
  mutable unsigned firstLeft = 0;
  double serial = 0, finish = 0;
};

} // namespace bowline

#endif // BOWLINE_PASSES_OVERLAP_SEGMENTSCHEDULE_H
