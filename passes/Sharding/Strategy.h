//===- Strategy.h - How a program is divided among ranks
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_SHARDING_STRATEGY_H
#define BOWLINE_PASSES_SHARDING_STRATEGY_H

#include "dialects/Dist/DistOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Stages/Schedules/ScheduleChoice.h"

#include <optional>
#include <string>
#include <vector>

namespace bowline {

/// The short form of a strategy, as the flags of a command. What is empty or unset has its default.
struct StrategyFlags {
  std::string mesh; ///< "pp=2,dp=2,tp=2", the first axis outermost
  bool sequenceParallel = false;
  std::optional<int64_t> zero; ///< 0 to 3
  std::string zeroAxis;
  std::string schedule; ///< kScheduleSyntax
  std::optional<int64_t> microbatches;
  std::string stages;    ///< "balanced", or "[0..5],[6..11]"
  std::string recompute; ///< none, selective, full or auto
};

/// How a program is divided among ranks: all choices made and checked against each other. What depends on the model
/// (are there such parameters, so many layers?) is checked where it is used.
class Strategy {
public:
  /// First and last layer of a stage.
  using LayerRange = std::pair<int64_t, int64_t>;
  using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;

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

  /// Fails with a diagnostic at the line that is wrong, which names the nearest valid choice.
  static mlir::FailureOr<Strategy> fromOp(dist::StrategyOp op);
  /// Axes have their usual names: pp for stages, dp and fsdp for the batch, tp for tensor parallelism; any other must
  /// be that of `--zero-axis`. Fails with a diagnostic of \p emitError that names the flag and the nearest valid
  /// choice.
  static mlir::FailureOr<Strategy> fromFlags(const StrategyFlags &flags, EmitError emitError);
  /// The module's `dist.strategy`; null where there is none.
  static dist::StrategyOp find(mlir::ModuleOp module);

  /// The long form, which fromOp reads back.
  dist::StrategyOp write(mlir::OpBuilder &builder, mlir::Location location, llvm::StringRef name) const;

  /// Ranks along an axis; 1 for an axis that is empty or not in the mesh.
  int64_t getSize(llvm::StringRef axis) const;

  std::vector<Axis> mesh;
  /// Along which the batch is divided, the first one outermost.
  std::vector<std::string> batchAxes;
  /// Axes, empty where nothing is divided so.
  std::string tensorAxis, stageAxis, sequenceAxis, zeroAxis;
  std::vector<Pattern> patterns;
  /// Layers of each stage, or empty: balanced by their cost.
  std::vector<LayerRange> stages;
  std::optional<ScheduleChoice> schedule;
  std::optional<int64_t> microbatches;
  int64_t zeroLevel = 0;
  std::string recompute = "none";

private:
  void setDefaultAxes();
  bool isFree(llvm::StringRef axis) const;
  bool has(llvm::StringRef axis) const;
};

/// "pp=2,dp=2,tp=2". Sizes are positive, names differ, and their product is at most 2^20 ranks.
mlir::FailureOr<std::vector<Strategy::Axis>> parseMesh(llvm::StringRef text, Strategy::EmitError emitError);

/// "balanced" (an empty list) or "[0..5],[6..11]": stages that begin where the one before ended, the first with layer
/// 0.
mlir::FailureOr<std::vector<Strategy::LayerRange>> parseStages(llvm::StringRef text, Strategy::EmitError emitError);

} // namespace bowline

#endif // BOWLINE_PASSES_SHARDING_STRATEGY_H
