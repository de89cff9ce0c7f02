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

/// Returns whether ranks of other stages take part in a command, because its communicator includes `stage.axis`.
bool isBetweenStages(mlir::Operation *command, mlir::SymbolTable &symbols);

/// Whether SegmentSchedule may order a segment: all commands are on the first stream, and none is a signal or wait.
bool isFree(plan::SegmentOp segment);

/// List scheduling (Graham, 1969) of one segment. Stream 0 runs kernels and copies, every communicator has a stream,
/// and the cost model gives the time of each command.
///
/// A reduction is issued as soon as its operands are complete. A gather is issued at its turn in the given order, or
/// earlier while fewer than its prefetch distance (`dist.prefetch`, else 1) of gathers on its stream are unused, which
/// bounds the memory of gathered tensors. Commands of stream 0 keep their order, except that up to kWindow of them may
/// overtake one that would have to wait for communication. Transfers between stages keep their stream and their order,
/// which must match ranks with other programs.
///
/// Some values are last read by a reduction, such as a whole gradient of which ranks keep shards. Such a value is alive
/// until a command of stream 0 waits for the reduction. So the next command of stream 0 waits for the oldest reductions
/// while the unreduced values exceed kReductionsInFlight times the largest of them. That much work keeps the
/// reductions' stream busy.
///
/// The result depends only on the segment, so it is equal on all ranks.
class SegmentSchedule {
public:
  /// The segment is free. `streamOf` has a stream per communicator; all other commands stay on stream 0. `mostPrefetch`
  /// bounds every prefetch distance.
  SegmentSchedule(plan::SegmentOp segment, mlir::SymbolTable &symbols, CommandCost &cost,
                  const llvm::StringMap<int64_t> &streamOf, int64_t mostPrefetch);

  /// Finds the order.
  void run();

  /// The estimated time in seconds: of all commands run serially, and of the schedule.
  double serialSeconds() const { return serial; }
  double seconds() const { return finish; }

  /// Applies the order and the streams to the segment. Adds events so that every communication begins only after the
  /// commands of stream 0 in front of it end. Numbers events from `firstEvent` on and returns the number of events.
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
