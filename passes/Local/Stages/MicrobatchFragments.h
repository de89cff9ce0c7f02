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

/// The placement and the timeline that all ranks of a pipeline have in common.
struct PipelineRanks {
  const Placement &placement;
  const PipelineTimeline &timeline;

  int64_t rankOf(int64_t stage) const { return placement.rankOf(static_cast<int>(stage)); }
  /// The name of the channel on which the activations, or gradients, of a stage leave its rank; empty if the next stage
  /// is on the same rank.
  llvm::StringRef channelOf(StepKind kind, int64_t stage) const;
};

/// The step of a timeline that a function is for.
using FragmentKey = std::pair<int64_t, StepKind>; // stage, kind

/// The name of a fragment's function, such as "forward.3" for stage 3.
std::string nameOfFragment(FragmentKey key);

/// Divides the function that runs per microbatch into functions, one per kind of step and stage of one rank, in the
/// module of this rank. A value that one of them computes and others use is kept in a `graph.state` with the role
/// stash. There is one for each value, however many use it, also where two neighbouring stages are on the rank and
/// nothing is sent.
///
/// Operations that are in both phases or belong to no stage are computed again rather than kept, and so are, in a
/// backward pass, reshapes, broadcasts, widenings and activations of kept values. A write of a value that belongs to no
/// stage is in the rank's first stage, so that it runs once per microbatch. The computation of a send's own step wrote
/// the sent value; a value that is received and only passed on is copied there. So slots live as PipelineTimeline.h
/// says.
class MicrobatchFragments {
public:
  /// \p function is labelled and checked. \p symbols is that of the rank's module.
  MicrobatchFragments(graph::FuncOp function, const PipelineRanks &ranks, int64_t rank, mlir::SymbolTable &symbols);

  /// Creates the functions and the states. Functions without operations are not there.
  void run();

  /// A step of the rank that has a function, and the name of this. If a stage has a backward that is divided, all of
  /// its backwards are.
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
  /// The value itself; for a value that was transferred from a stage on the same rank, the value that was sent.
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
