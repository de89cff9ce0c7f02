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

/// Chooses the forward values of a block that the backward part recomputes. The block's order is the execution order.
/// Its forward part computes a loss; all other operations are its backward part, which may begin before the forward
/// part ends. A forward value that the backward part uses is kept, or a clone of its operation recomputes it from kept
/// values right before its first backward use. Clones run the same kernels on the same values: equal bit for bit.
///
/// Collectives are cloned too, except those that exchange tokens or cross pipeline stages. If the backward part gathers
/// a parameter itself (ZeRO 3), this gather moves before the first clone that needs it, and both share the result; a
/// parameter that only the forward part gathers is gathered once more for the clones.
///
/// If a result of an epilogue depends only on stored values, its clone leaves out the contraction
/// (DetachedEpilogue.h).
///
/// A reshape counts as the value that it reshapes. Variables, arguments and constants count no memory here.
class Recomputation {
public:
  /// `handedOn`: variables that are consumed outside of the block as soon as the block writes them.
  Recomputation(mlir::Block &block, const llvm::DenseSet<mlir::Operation *> &forward,
                const llvm::DenseSet<llvm::StringRef> &handedOn = {});

  /// The kept values, and the resulting costs. Byte counts ignore scratch buffers and in-place reuse.
  struct Choice {
    std::vector<bool> kept;    // by index in `values`
    int64_t peakBytes = 0;     // peak of the bytes of live values
    double flops = 0;          // floating-point operations of all clones
    double cost = 0;           // flops, plus the time of cloned collectives in flops
    int64_t operations = 0;    // number of cloned operations
    int64_t collectives = 0;   // number of cloned collectives among them
    int64_t droppedBytes = 0;  // bytes of values that are recomputed instead of kept
    int64_t freeableBytes = 0; // bytes of kept values alive at the peak that could be recomputed
  };

  /// Keeps everything that the backward part uses.
  Choice keepAll() const;

  /// Keeps the shards of values that the forward part gathers and the backward part uses, and gathers them again
  /// (Korthikanti et al., 2022, section 4.2.2).
  Choice keepShards() const;

  /// Recomputes large results of generated kernels, elementwise or by rows, whose operands are kept anyway, and gathers
  /// again as `keepShards` does.
  Choice selective() const;

  /// Keeps only the values alive at some points of the forward part where few bytes are alive, as
  /// between the layers of a network. The distance between points is the one with the lowest peak.
  /// After the last point it keeps everything that `selective` keeps. With several `copies` of the
  /// kept values, one per microbatch in flight, the lowest sum of the peak and the other copies
  /// decides instead.
  Choice full(int64_t copies = 1) const;

  /// A list of choices from no recomputation up to as much as lowers the peak. Each recomputes more operations than the
  /// one before; greedily, the next is the one that frees the most bytes at the peak per floating-point operation.
  std::vector<Choice> increasing() const;

  /// The cheapest of all choices above that needs at most `bytes`, counting `copies` of the kept values; if none fits,
  /// the one that needs the fewest bytes.
  Choice atMost(int64_t bytes, int64_t copies = 1) const;

  /// Clones operations as `choice` says.
  void apply(const Choice &choice);

  /// Floating-point operations of the original block.
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
  /// Returns whether the results of a part come with those of the group, which is computed again too.
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
