//===- MicrobatchFragments.h - Functions that a rank of a pipeline runs per microbatch
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_STAGES_MICROBATCHFRAGMENTS_H
#define BOWLINE_PASSES_LOCAL_STAGES_MICROBATCHFRAGMENTS_H

#include "dialects/Stage/StageOps.h"
#include "passes/Local/Stages/PartialFunction.h"
#include "passes/Stages/Schedules/PipelineTimeline.h"

#include <map>
#include <memory>
#include <set>

namespace bowline {

/// The placement of stages and the timeline, which all ranks of a pipeline share.
struct PipelineRanks {
  const Placement &placement;
  const PipelineTimeline &timeline;

  int64_t rankOf(int64_t stage) const { return placement.rankOf(static_cast<int>(stage)); }
  /// The name of the channel on which the activations, or gradients, of a stage leave its rank; empty if the next stage
  /// is on the same rank.
  llvm::StringRef channelOf(StepKind kind, int64_t stage) const;
};

/// Identifies the steps of a timeline that one function runs.
using FragmentKey = std::pair<int64_t, StepKind>; // stage, kind

/// The name of a fragment's function, such as "forward.3" for stage 3.
std::string nameOfFragment(FragmentKey key);

/// Divides the function that runs per microbatch into fragments: functions in the module of one rank, one per stage of
/// the rank and kind of step. A value that one fragment computes and others use goes through a stash (`graph.state`
/// with lifetime stash). Each value has one stash, regardless of the number of users, also if two neighbouring stages
/// are on the same rank and nothing is sent.
///
/// Some values are recomputed in each fragment instead: those of operations that are in both phases or in no stage,
/// and, in a backward pass, reshapes, broadcasts, widenings and activations of stashed values. A write of a value
/// without a stage is in the rank's first stage, so that it runs once per microbatch. A send reads a stash that the
/// computation of its own stage wrote; that computation copies a received value that is only passed on. So the slots of
/// stashes live as PipelineTimeline.h says.
class MicrobatchFragments {
public:
  /// \p function is labelled and checked. \p symbols is that of the rank's module.
  MicrobatchFragments(graph::FuncOp function, const PipelineRanks &ranks, int64_t rank, mlir::SymbolTable &symbols);

  /// Creates the functions and the states. A fragment without operations gets no function.
  void run();

  /// A step of the rank that has a function, as the function's name and the microbatch. If one backward pass of a stage
  /// is divided in two, all backward passes of the stage are.
  struct Step {
    std::string function;
    int64_t microbatch;
  };
  std::vector<Step> steps() const;
  /// The names of the functions of steps, by stage and kind.
  std::vector<std::string> functions() const;

private:
  struct Fragment {
    FragmentKey key;
    std::unique_ptr<PartialFunction> function;
  };
  struct Stash {
    graph::StateOp state;
    Fragment *writer;
    std::set<FragmentKey> readers;
  };

  void chooseSteps();
  Fragment *fragment(int64_t stage, StepKind kind);
  /// The value itself, or for the result of transfers from stages on the same rank, the value that was transferred.
  mlir::Value origin(mlir::Value value) const;
  bool isHere(int64_t stage) const { return ranks.rankOf(stage) == rank; }
  bool floats(mlir::Operation *op) const;
  int64_t stageHere(mlir::Operation *op) const;
  StepKind computationOf(mlir::Operation *op, int64_t stage) const;
  /// The fragment that computes or receives a value; null for a value that every function computes itself.
  Fragment *homeOf(mlir::Value origin);
  /// The value in the function of `user`, which reads or computes it if it does not have it yet.
  mlir::Value get(mlir::Value value, Fragment *user);
  mlir::Value read(mlir::Value origin, Fragment *writer, Fragment *user);
  void emit(mlir::Operation *op, Fragment *into);

  void compute();
  void receive();
  void send();
  void write();
  void countSlots();
  int64_t slotsOf(const Stash &stash) const;

  graph::FuncOp function;
  const PipelineRanks &ranks;
  int64_t rank;
  mlir::SymbolTable &symbols;

  std::vector<TimelineStep> order;
  /// findBackwardInput of each stage whose backwards are divided.
  std::map<int64_t, llvm::DenseSet<mlir::Operation *>> inputs;
  std::map<FragmentKey, Fragment> fragments;
  llvm::MapVector<std::pair<mlir::Value, Fragment *>, Stash> stashes;
  std::map<FragmentKey, int64_t> counts; ///< numbers of stashes, for names
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_STAGES_MICROBATCHFRAGMENTS_H
