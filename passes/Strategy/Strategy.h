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

/// The choices of a `dist.strategy`, with its defaults: all are made and checked against each other. A choice that
/// depends on the model (are there such parameters, so many layers?) is checked where it is used. Lines that stand for
/// themselves, such as `recompute`, are read by the functions of DistOps.h.
class Strategy {
public:
  /// First and last layer of a stage.
  using LayerRange = std::pair<int64_t, int64_t>;

  /// The sharding of the parameters that match; of several patterns the last one counts.
  struct Pattern {
    std::string glob;
    dist::ShardingAttr sharding;
    mlir::Location location;
  };

  struct Axis {
    std::string name;
    int64_t size;
  };

  /// Axes have their usual roles where no line says otherwise: pp for stages, dp and fsdp for the batch, tp for tensor
  /// parallelism. Fails with a diagnostic at the line that is wrong, which names the nearest valid choice.
  static mlir::FailureOr<Strategy> fromOp(dist::StrategyOp op);

  /// Ranks along an axis; 1 for an axis that is empty or not in the mesh.
  int64_t getSize(llvm::StringRef axis) const;
  /// Ranks along all axes.
  int64_t countRanks() const;

  /// Empty for one rank.
  std::vector<Axis> mesh;
  /// Along which the batch is divided, the first one outermost.
  std::vector<std::string> batchAxes;
  /// Axes, empty where nothing is divided so.
  std::string tensorAxis, stageAxis, sequenceAxis, zeroAxis;
  std::vector<Pattern> patterns;
  /// Layers of each stage, or empty: balanced by their cost.
  std::vector<LayerRange> stages;
  /// None where nothing says it, which is 1f1b.
  std::optional<ScheduleChoice> schedule;
  /// The text of a schedule that is a table.
  std::string scheduleTable;
  /// None where nothing says it, which is one.
  std::optional<int64_t> microbatches;
  int64_t zeroLevel = 0;
  /// The number of gathers of parameters that may be under way ahead of use with level 3.
  int64_t prefetch = 1;
  bool gathersOnce = false; ///< with ZeRO 3, for microbatches in a row

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
