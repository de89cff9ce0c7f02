//===- MicrobatchFragments.h - What a rank of a pipeline runs per microbatch
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

/// What the ranks of a pipeline agree on.
struct PipelineRanks {
  const Placement &placement;
  const PipelineTimeline &timeline;

  int64_t rankOf(int64_t stage) const { return placement.rankOf(static_cast<int>(stage)); }
  /// The name of the channel on which the activations, or gradients, of a stage leave its rank; empty where the next
  /// stage is on the same one.
  llvm::StringRef channelOf(StepKind kind, int64_t stage) const;
};

/// The step of a timeline that a function is for.
using FragmentKey = std::pair<int64_t, StepKind>; // stage, kind

/// "forward.3".
std::string nameOfFragment(FragmentKey key);

/// Divides what runs per microbatch into functions, one per kind of step and stage of one rank, in the module of this
/// rank. What one of them computes and another one uses is kept in a `graph.state` with the role stash; there is one
/// per value, whoever uses it, also where two neighbouring stages are on the rank and nothing is sent.
///
/// Not kept but computed again: what is in both phases, what belongs to no stage, and in a backward pass reshapes,
/// broadcasts, widenings and activations of what is kept. A write of what belongs to no stage is in the rank's first
/// stage, so that it runs once per microbatch. What is sent was written by the computation of its own step; what is
/// received and only passed on is copied there. So slots live as PipelineTimeline.h says.
class MicrobatchFragments {
public:
  /// \p function is labelled and checked. \p symbols is that of the rank's module.
  MicrobatchFragments(graph::FuncOp function, const PipelineRanks &ranks, int64_t rank, mlir::SymbolTable &symbols);

  /// Creates the functions and the states. Functions without operations are not there.
  void run();

  /// The steps of the rank that have a function, and the names of these. A stage whose backwards are ever divided has
  /// them divided always.
  struct Step {
    std::string function;
    int64_t microbatch;
  };
  std::vector<Step> steps() const;
  /// Of steps, by stage and kind.
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
  /// The value itself, or what a neighbour on the same rank has of it.
  mlir::Value origin(mlir::Value value) const;
  bool isHere(int64_t stage) const { return ranks.rankOf(stage) == rank; }
  bool floats(mlir::Operation *op) const;
  int64_t stageHere(mlir::Operation *op) const;
  StepKind computationOf(mlir::Operation *op, int64_t stage) const;
  /// Where a value is made; null for what every function makes itself.
  Fragment *homeOf(mlir::Value origin);
  /// The value in a function, which reads or makes it where it does not have it.
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
  std::map<int64_t, llvm::DenseSet<mlir::Operation *>> inputs; ///< of stages whose backwards are divided
  std::map<FragmentKey, Fragment> fragments;
  llvm::MapVector<std::pair<mlir::Value, Fragment *>, Stash> stashes;
  std::map<FragmentKey, int64_t> counts; ///< of stashes, for names
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_STAGES_MICROBATCHFRAGMENTS_H
