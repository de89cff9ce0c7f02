//===- Recompute.cpp - Compute forward values again in the backward pass
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Plan/PlanOps.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/IR/Remarks.h"
#include "passes/Analysis/TrainingNames.h"
#include "passes/Fusion/Passes.h"
#include "passes/Fusion/Recomputation/Recomputation.h"
#include "passes/Fusion/Recomputation/StageRecomputation.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InterleavedRange.h"

namespace bowline {
#define GEN_PASS_DEF_RECOMPUTE
#include "passes/Fusion/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class Recompute : public bowline::impl::RecomputeBase<Recompute> {
public:
  using RecomputeBase::RecomputeBase;

  void runOnProgram() override {
    mode = dist::recomputeOf(getOperation());
    auto function = graph::FuncOp::find(getOperation(), graph::FunctionPart::Microbatch);
    if (mode == "auto" && memoryTarget <= 0)
      mode = "none";
    if (mode == "none" && !isSequenceParallel())
      return;
    if (!function)
      return failed(recomputeStages()) ? signalPassFailure() : void();
    DenseSet<Operation *> forward = forwardOperations(function);
    if (!forward.empty())
      recompute(function, forward);
  }

private:
  /// The functions of the backward pass of the stage of `forward`, in their order.
  SmallVector<graph::FuncOp> backwardOf(graph::FuncOp forward) {
    SmallVector<graph::FuncOp> result;
    for (auto part :
         {graph::FunctionPart::Backward, graph::FunctionPart::BackwardInput, graph::FunctionPart::BackwardWeight})
      for (auto function : getOperation().getOps<graph::FuncOp>())
        if (function.getPart() == part && stage::indexOf(function) == stage::indexOf(forward))
          result.push_back(function);
    return result;
  }

  /// The entry that runs `function` for several microbatches.
  graph::EntryOp entryOf(graph::FuncOp function) {
    for (auto entry : getOperation().getOps<graph::EntryOp>())
      if (entry.getTimeline() && llvm::is_contained(entry.getFunctions(), FlatSymbolRefAttr::get(function)))
        return entry;
    return {};
  }

  /// The stages of a pipeline.
  LogicalResult recomputeStages() {
    SymbolTable symbols(getOperation());
    SmallVector<graph::FuncOp> stages;
    for (auto function : getOperation().getOps<graph::FuncOp>())
      if (function.getPart() == graph::FunctionPart::Forward)
        stages.push_back(function);
    int64_t bytes = stages.empty() ? 0 : (memoryTarget - persistentBytes()) / static_cast<int64_t>(stages.size());
    for (graph::FuncOp forward : stages) {
      graph::EntryOp entry = entryOf(forward);
      if (!entry)
        return forward.emitError("is the forward pass of a stage, and no entry with a timeline runs it");
      auto done = StageRecomputation(forward, backwardOf(forward), entry, symbols)
                      .run([&](const Recomputation &recomputation, int64_t slots) {
                        return choose(recomputation, slots, bytes);
                      });
      std::string where = llvm::formatv(" of stage {0}", llvm::interleaved(stage::indexOf(forward)));
      if (done && (mode != "none" || done->chosen.operations > 0))
        report(forward, done->none, done->chosen, done->totalFlops,
               llvm::formatv("{0}, for {1} microbatches in flight", where, done->slots).str());
      else if (mode != "none")
        emitRemark(line().getLoc()) << "recompute " << mode << where
                                    << ": nothing runs again, as its forward pass keeps nothing for its backward pass";
    }
    return success();
  }

  /// The operations that the loss of this microbatch needs, without those that depend on an accumulator, as the sum
  /// over microbatches does.
  DenseSet<Operation *> forwardOperations(graph::FuncOp function) {
    Block &block = function.getBody().front();
    DenseSet<Value> accumulated;
    Value loss;
    for (Operation &op : block) {
      bool reads = false;
      if (auto read = dyn_cast<graph::ReadOp>(op))
        reads = isAccumulator(read.getVariable());
      if (reads || llvm::any_of(op.getOperands(), [&](Value value) { return accumulated.contains(value); }))
        accumulated.insert(op.result_begin(), op.result_end());
      if (auto write = dyn_cast<graph::WriteOp>(op); write && write.getVariable() == training::kLossSum)
        loss = write.getValue();
    }
    DenseSet<Operation *> seen, forward;
    SmallVector<Value> worklist;
    if (loss)
      worklist.push_back(loss);
    while (!worklist.empty()) {
      Operation *op = worklist.pop_back_val().getDefiningOp();
      if (!op || !seen.insert(op).second)
        continue;
      if (!accumulated.contains(op->getResult(0)))
        forward.insert(op);
      llvm::append_range(worklist, op->getOperands());
    }
    return forward;
  }

  bool isAccumulator(StringRef variable) {
    auto state = getOperation().lookupSymbol<graph::StateOp>(variable);
    return state && state.isAccumulator();
  }

  /// Accumulators of which a step with one microbatch keeps shards alone (ZeRO 1): they are scattered bucket by bucket
  /// while the backward pass goes on.
  DenseSet<StringRef> scatteredGradients(graph::FuncOp function) {
    DenseSet<StringRef> scattered;
    auto entry = graph::EntryOp::find(getOperation(), EntryKind::TrainStep);
    if (!entry || llvm::any_of(entry.getRepeat(), [](int64_t runs) { return runs > 1; }))
      return scattered;
    for (auto other : getOperation().getOps<graph::FuncOp>())
      if (other != function)
        for (auto read : other.getBody().front().getOps<graph::ReadOp>())
          if (isAccumulator(read.getVariable()) && isScattered(read))
            scattered.insert(read.getVariable());
    return scattered;
  }

  /// Whether ranks need nothing but a shard of the sum of \p whole.
  static bool isScattered(Value whole) {
    return !whole.use_empty() && llvm::all_of(whole.getUsers(), [](Operation *user) {
      if (auto bucket = dyn_cast<dist::BucketOp>(user))
        return bucket.getKind() == dist::CollectiveKind::ReduceScatter;
      return isa<dist::ReduceScatterOp>(user) || (graph::isView(user) && isScattered(user->getResult(0)));
    });
  }

  void recompute(graph::FuncOp function, const DenseSet<Operation *> &forward) {
    Recomputation recomputation(function.getBody().front(), forward, scatteredGradients(function));
    Recomputation::Choice none = recomputation.keepAll();
    Recomputation::Choice choice = choose(recomputation, /*copies=*/1, memoryTarget - otherBytes(function));
    recomputation.apply(choice);
    if (mode != "none" || choice.operations > 0)
      report(function, none, choice, recomputation.totalFlops(), "");
  }

  void report(graph::FuncOp function, const Recomputation::Choice &none, const Recomputation::Choice &choice,
              double totalFlops, const std::string &where) {
    Location place = getOperation().getLoc();
    std::string text;
    if (choice.operations > 0) {
      text = llvm::formatv(
          "recompute {0}{7}: {1} operations run again{8}, {2:F1} MiB are not kept, {3:E2} FLOP more ({4:F2} %); "
          "about {5:F1} MiB "
          "of values at the peak, {6:F1} MiB without",
          mode, choice.operations, mebibytes(choice.droppedBytes), choice.flops,
          totalFlops > 0 ? 100 * choice.flops / totalFlops : 0.0, mebibytes(choice.peakBytes),
          mebibytes(none.peakBytes), where,
          choice.collectives > 0 ? llvm::formatv(" ({0} of them collectives)", choice.collectives).str() : "");
    } else {
      text = llvm::formatv("recompute {0}{1}: nothing runs again, as {2}; about {3:F1} MiB of values at the peak", mode,
                           where, whyNothing(none), mebibytes(none.peakBytes));
      place = line().getLoc();
    }
    remark::passed(function.getLoc(), remark::RemarkOpts::name("Recompute").category("memory")) << text;
    if (mode != "none") // else it is the strategy's default
      emitRemark(place) << text;
  }

  /// Why all is kept that is kept without recomputation.
  StringRef whyNothing(const Recomputation::Choice &none) {
    if (mode == "selective")
      return "no large value is cheap to compute from those that are kept anyway";
    if (mode == "auto" && none.peakBytes <= memoryTarget)
      return "all values fit into the memory that there is for them";
    if (none.freeableBytes == 0)
      return "none of the values that are alive at the peak could be computed again, so that it would take time and "
             "free nothing";
    return "whatever is computed again needs as much at the peak as it frees";
  }

  /// \p copies of the kept values exist at one time; `auto` has \p bytes for values.
  Recomputation::Choice choose(const Recomputation &recomputation, int64_t copies, int64_t bytes) {
    if (mode == "none")
      return recomputation.keepShards();
    if (mode == "selective")
      return recomputation.selective();
    return mode == "full" ? recomputation.full(copies) : recomputation.atMost(bytes, copies);
  }

  bool isSequenceParallel() {
    auto strategy = dist::StrategyOp::of(getOperation());
    return strategy && strategy.getOnly<dist::SequenceParallelOp>();
  }

  dist::RecomputeOp line() { return dist::StrategyOp::of(getOperation()).getOnly<dist::RecomputeOp>(); }

  /// The mode that the strategy asks for: none, selective, full or auto.
  StringRef mode;

  static double mebibytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

  /// Bytes of parameters and of states other than stashes.
  int64_t persistentBytes() {
    int64_t bytes = 0;
    for (auto param : getOperation().getOps<graph::ParamOp>())
      bytes += static_cast<int64_t>(plan::byteCount(param.getTensorType()));
    for (auto state : getOperation().getOps<graph::StateOp>())
      if (!state.isStash())
        bytes += static_cast<int64_t>(plan::byteCount(state.getTensorType()));
    return bytes;
  }

  /// Bytes of the arena beside the values of the function: variables, and accumulators that exist before it.
  int64_t otherBytes(graph::FuncOp function) {
    int64_t bytes = 0;
    auto add = [&](RankedTensorType type) { bytes += static_cast<int64_t>(plan::byteCount(type)); };
    for (auto param : getOperation().getOps<graph::ParamOp>())
      add(param.getTensorType());
    DenseSet<StringRef> read;
    for (auto access : function.getBody().front().getOps<graph::ReadOp>())
      read.insert(access.getVariable());
    for (auto state : getOperation().getOps<graph::StateOp>())
      if (!state.isAccumulator() || read.contains(state.getName()))
        add(state.getTensorType());
    for (Type type : function.getArgumentTypes())
      add(cast<RankedTensorType>(type));
    return bytes;
  }
};

} // namespace
