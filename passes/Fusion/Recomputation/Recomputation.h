//===- Recomputation.h - Which forward values the backward pass computes again
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_FUSION_RECOMPUTATION_RECOMPUTATION_H
#define BOWLINE_PASSES_FUSION_RECOMPUTATION_RECOMPUTATION_H

#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <vector>

namespace bowline {

/// A block whose order is the order of execution, with a forward part, which computes a loss, and a backward part: all
/// other operations, which may begin before the forward part ends. A forward value that the backward part uses is
/// either kept or computed again from kept values, by a clone of its operation right before its first backward use.
/// Clones run the same kernels on the same values, so that results are the same bit for bit.
///
/// Collectives are cloned too, except those that exchange tokens or cross stages of a pipeline. Of parameters that are
/// gathered before they are used (ZeRO 3), the gather of the backward part moves in front of the first clone that needs
/// them, and both share it; a parameter that only the forward part gathers is gathered once more for the clones.
///
/// A result of a group that works on a contraction's result is computed again without the contraction where it needs
/// only stored values (DetachedEpilogue.h).
///
/// Reshapes are the value that they reshape; variables, arguments and constants need no memory here.
class Recomputation {
public:
  /// `handedOn`: variables that something takes from the block as soon as they are written.
  Recomputation(mlir::Block &block, const llvm::DenseSet<mlir::Operation *> &forward,
                const llvm::DenseSet<llvm::StringRef> &handedOn = {});

  /// The kept values, and the costs that follow. Bytes count values only: neither scratch nor computing in place.
  struct Choice {
    std::vector<bool> kept;    // by value
    int64_t peakBytes = 0;     // the most bytes of values alive at one time
    double flops = 0;          // operations of all clones
    double cost = 0;           // operations, and those that fit into the time of cloned collectives
    int64_t operations = 0;    // number of operations that are cloned
    int64_t collectives = 0;   // of these
    int64_t droppedBytes = 0;  // of values kept without recomputation
    int64_t freeableBytes = 0; // of kept values alive at the peak that could be computed again
  };

  /// Everything that the backward part uses is kept.
  Choice keepAll() const;

  /// Keeps the shards of values that the forward part gathers and the backward part uses, and gathers them again
  /// (Korthikanti et al., 2022, section 4.2.2).
  Choice keepShards() const;

  /// Computes again the large results that code generated for elementwise and row operations computes from values that
  /// are kept anyway, and gathers again as `keepShards`.
  Choice selective() const;

  /// Keeps only the values alive at some points of the forward part: those where little is alive, as
  /// between the layers of a network. The distance of the points is the one with the lowest peak.
  /// After the last point all is kept that `selective` keeps, unless the kept values exist in several
  /// copies, for as many microbatches in flight: then the lowest sum of the peak and the other copies
  /// decides.
  Choice full(int64_t copies = 1) const;

  /// Choices from none to as much as helps. Each computes more operations again than the one before, those first that
  /// free the most bytes at the peak for an operation of arithmetic (greedy).
  std::vector<Choice> increasing() const;

  /// The choice of the lowest cost, among all of the above, whose peak is at most `bytes`, with several copies of the
  /// kept values; the one that needs the least if there is none.
  Choice atMost(int64_t bytes, int64_t copies = 1) const;

  /// Clones operations as `choice` says.
  void apply(const Choice &choice);

  /// Operations of arithmetic of the block as it was.
  double totalFlops() const { return blockFlops; }

private:
  struct ValueInfo {
    mlir::Value value;
    int64_t bytes;
    int producer;            // operation
    bool saved = false;      // a forward value that the backward part uses
    bool toTheEnd = false;   // stored in a variable
    bool received = false;   // the result of a collective that is not issued again
    bool isGathered = false; // a parameter that was gathered to be used
    int again = -1;          // of such a one: the value that the backward part gathers for the first time
  };
  struct OpInfo {
    mlir::Operation *op;
    llvm::SmallVector<int> operands, results; // values
    double flops, cost;
    bool forward;
    int whole = -1; // of a part of a group, which is in no block: the operation that computes it with the rest
  };
  struct Simulation;

  void addOperation(mlir::Operation *op, bool forward, const llvm::DenseSet<llvm::StringRef> &handedOn);
  void addInfo(mlir::Operation *op, mlir::ValueRange results, bool forward, int whole);
  /// Whether the results of a part come with those of the group, which is computed again too.
  bool comesWithWhole(const OpInfo &info, llvm::function_ref<bool(int)> isThere) const;
  bool isForward(int op) const { return ops[op].forward; }
  bool isAlwaysKept(int value) const {
    const ValueInfo &info = values[value];
    return info.toTheEnd || info.received || (info.isGathered && info.saved);
  }
  void findGathers();
  /// The gather of the backward part, in front of its first user.
  mlir::Value gatherAgain(int value, mlir::OpBuilder &builder, llvm::function_ref<mlir::Value(mlir::Value)> rebuild);
  bool isCheap(const OpInfo &info) const;
  int64_t savedBytes() const;
  Simulation simulate(const std::vector<bool> &kept) const;
  Choice evaluate(std::vector<bool> kept) const;
  std::vector<int64_t> forwardLiveBytes() const;
  /// `end`: the values that are kept behind the last point.
  Choice keepAtPoints(int64_t distance, const std::vector<int64_t> &live, const std::vector<bool> &end) const;
  /// The peak, with several copies of the values that go from the forward part to the backward part.
  int64_t bytesOf(const Choice &choice, int64_t copies) const;
  double addedCost(int op, const std::vector<bool> &kept, const std::vector<bool> &cloned) const;

  llvm::DenseMap<mlir::Value, int> idOf; // -1: needs no memory
  std::vector<ValueInfo> values;
  std::vector<OpInfo> ops; // in block order, parts behind their groups; no reshapes, reads, writes, constants
  std::vector<mlir::OwningOpRef<graph::FusionOp>> parts;
  std::vector<int> lastForwardUse; // by value: operation, or its producer
  llvm::SmallVector<int> forwardOps;
  llvm::DenseSet<llvm::StringRef> variablesRead;
  mlir::Block &block;
  int64_t alignment; ///< of buffers on the device
  double blockFlops = 0;
};

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_RECOMPUTATION_RECOMPUTATION_H
