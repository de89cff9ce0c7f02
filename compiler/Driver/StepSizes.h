//===- StepSizes.h - Batches, microbatches and sequences that go together
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_STEPSIZES_H
#define BOWLINE_COMPILER_DRIVER_STEPSIZES_H

#include "passes/Strategy/Strategy.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bowline {

/// The sizes of one training step. A program from a .mlir file states its own batch and sequence, which are 0 here.
struct StepSizes {
  int64_t batch = 0; ///< sequences, over all microbatches
  int64_t microbatches = 1;
  int64_t seq = 0; ///< positions per sequence

  bool operator==(const StepSizes &) const = default;
};

/// Says whether messages advise to change a flag or a line of the strategy file.
struct StepFlags {
  /// True if the file, and not a flag, states the number of microbatches or the schedule.
  bool areMicrobatchesInFile = false, isScheduleInFile = false;
};

/// The conditions that a strategy sets on the sizes of a step. All conditions are here, so that sizes which a message
/// advises meet all of them: each advice is checked before it is given.
class StepSizeRules {
public:
  /// \p maxPositions is the model's limit, if known; \p source says in messages where that limit comes from.
  explicit StepSizeRules(Strategy strategy, std::optional<int64_t> maxPositions = std::nullopt,
                         std::string source = "as config.json says");

  /// Restricts advice to sizes and schedules that \p accepts, such as those within a memory limit. The text is the name
  /// of another schedule, or empty for the schedule of the strategy.
  void adviseOnly(std::function<bool(const StepSizes &, llvm::StringRef)> accepts) { isAccepted = std::move(accepts); }

  /// Returns OK, or the first failing condition that does not depend on the schedule, without advice.
  absl::Status checkBesideSchedule(const StepSizes &sizes) const;

  /// Returns OK, or kInvalidArgument that names the failing condition and advises sizes nearby that meet all
  /// conditions: with another number of microbatches, another batch, or both.
  absl::Status check(const StepSizes &sizes, const StepFlags &flags = {}) const;

  /// As check, for the length of sequences: the model limits it, and under sequence parallelism the ranks must divide
  /// it. \p isStep: the other sizes are those of a step, so that the advice must suit them, too.
  absl::Status checkSequence(const StepSizes &sizes, bool isStep) const;
  /// Returns the greatest length up to \p seq that model and ranks allow; 0 if there is none.
  int64_t longestBelow(int64_t seq) const;

  /// Returns the smallest sizes with sequences of length \p seq that the strategy allows; nothing if there are none. If
  /// a model fails even with these, the strategy suits it with no batch.
  std::optional<StepSizes> least(int64_t seq) const;

  bool allows(const StepSizes &sizes) const { return check(sizes, {}, /*advises=*/false).ok(); }

private:
  absl::Status check(const StepSizes &sizes, const StepFlags &flags, bool advises) const;
  absl::Status checkSlots(const StepSizes &sizes, const StepFlags &flags) const;
  absl::Status checkDivision(const StepSizes &sizes) const;
  absl::Status checkLength(const StepSizes &sizes) const;
  absl::Status checkPipeline(const StepSizes &sizes) const;
  absl::Status checkPositions(const StepSizes &sizes) const;

  std::vector<int64_t> nearestMicrobatches(const StepSizes &sizes) const;
  std::vector<int64_t> nearestBatches(const StepSizes &sizes) const;
  std::optional<StepSizes> nearestPair(const StepSizes &sizes) const;
  std::optional<std::string> otherSchedule(const StepSizes &sizes) const;
  std::string advise(const StepSizes &sizes, const StepFlags &flags) const;
  int64_t mostMicrobatches() const;

  Strategy strategy;
  std::optional<int64_t> maxPositions;
  std::string positionsSource;
  int64_t batchRanks = 1;
  std::function<bool(const StepSizes &, llvm::StringRef schedule)> isAccepted;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_STEPSIZES_H
