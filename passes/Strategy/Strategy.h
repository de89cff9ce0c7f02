//===- Strategy.h - The choices of a strategy, with its defaults
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STRATEGY_STRATEGY_H
#define BOWLINE_PASSES_STRATEGY_STRATEGY_H

#include "dialects/Dist/DistOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Stages/Schedules/ScheduleChoice.h"

#include <optional>
#include <string>
#include <vector>

namespace bowline {

/// The choices of a `dist.strategy`, with defaults filled in and checked against each other. The passes that use a
/// choice check it against the model, for instance against the number of layers. Functions in DistOps.h read lines that
/// do not depend on other lines, such as `recompute`.
class Strategy {
public:
  /// The first and the last layer of a stage, both inclusive.
  using LayerRange = std::pair<int64_t, int64_t>;

  /// A `shard` line: the sharding of all matching parameters. If several patterns match, the last one applies.
  struct Pattern {
    std::string glob;
    dist::ShardingAttr sharding;
    mlir::Location location;
  };

  struct Axis {
    std::string name;
    int64_t size;
  };

  /// Without a line for it, stages use axis pp, the batch uses dp and fsdp, and tensor parallelism uses tp, if the mesh
  /// has them. Fails with a diagnostic at the invalid line that names the nearest valid choice.
  static mlir::FailureOr<Strategy> fromOp(dist::StrategyOp op);

  /// Ranks along an axis; 1 for an axis that is empty or not in the mesh.
  int64_t getSize(llvm::StringRef axis) const;
  /// Ranks along all axes.
  int64_t countRanks() const;

  /// The axes of the mesh; empty for one rank.
  std::vector<Axis> mesh;
  /// The axes over which the batch is divided, outermost first.
  std::vector<std::string> batchAxes;
  /// The axis of each kind of parallelism; empty if the strategy does not use it.
  std::string tensorAxis, stageAxis, sequenceAxis, zeroAxis;
  std::vector<Pattern> patterns;
  /// The layers of each stage; empty means balanced by cost.
  std::vector<LayerRange> stages;
  /// The schedule; none if the strategy names none, which means 1f1b.
  std::optional<ScheduleChoice> schedule;
  /// The text of the table if the schedule is one.
  std::string scheduleTable;
  /// The number of microbatches; none if the strategy gives none, which means 1.
  std::optional<int64_t> microbatches;
  int64_t zeroLevel = 0;
  /// The number of gathers of parameters that may be under way ahead of use with level 3.
  int64_t prefetch = 1;
  bool gathersOnce = false; ///< with ZeRO 3, once for all microbatches that a pass takes in a row

private:
  mlir::LogicalResult readMesh(dist::StrategyOp op);
  void chooseAxes(dist::StrategyOp op);
  mlir::LogicalResult readPatterns(dist::StrategyOp op);
  mlir::LogicalResult readZero(dist::StrategyOp op);
  mlir::LogicalResult readSequence(dist::StrategyOp op);
  mlir::LogicalResult readPipeline(dist::StrategyOp op);
  mlir::LogicalResult readSchedule(dist::StrategyOp op);
  mlir::LogicalResult readStages(dist::StrategyOp op);
  mlir::LogicalResult checkUses(dist::MeshOp op) const;
  bool has(llvm::StringRef axis) const;
  bool isFree(llvm::StringRef axis) const;
};

} // namespace bowline

#endif // BOWLINE_PASSES_STRATEGY_STRATEGY_H
