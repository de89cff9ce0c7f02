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

/// The sizes of one step of training. A program that is no directory has its own batch and sequence, which are 0 here.
struct StepSizes {
  int64_t batch = 0; ///< sequences of all microbatches
  int64_t microbatches = 1;
  int64_t seq = 0; ///< positions of a sequence

  bool operator==(const StepSizes &) const = default;
};

/// How a message names the flags that it advises to change.
struct StepFlags {
  /// The microbatches and the schedule are lines of a file, and not flags.
  bool areMicrobatchesInFile = false, isScheduleInFile = false;
};

/// The sizes that a strategy allows: one place that knows all conditions, so that sizes that a message advises meet all
/// of them. Advice was tried before it is given.
class StepSizeRules {
public:
  /// \p maxPositions are those of the model, if they are known, and \p source is for messages about them.
  explicit StepSizeRules(Strategy strategy, std::optional<int64_t> maxPositions = std::nullopt,
                         std::string source = "as config.json says");

  /// Advises sizes alone that \p accepts takes too, as a limit of memory.
  void adviseOnly(std::function<bool(const StepSizes &)> accepts) { isAccepted = std::move(accepts); }

  /// OK, or the first condition that fails with any schedule, without advice.
  absl::Status checkBesideSchedule(const StepSizes &sizes) const;

  /// OK, or kInvalidArgument that says which condition fails and which sizes nearby meet all of them: another number of
  /// microbatches, another batch, or both.
  absl::Status check(const StepSizes &sizes, const StepFlags &flags = {}) const;

  /// The same about the length of sequences, which the model limits too, and with sequence parallelism ranks divide.
  /// \p isStep: the other sizes are those of a step, and the advice is about them as well.
  absl::Status checkSequence(const StepSizes &sizes, bool isStep) const;
  /// The greatest length up to \p seq that the model and the ranks take; 0 where there is none.
  int64_t longestBelow(int64_t seq) const;

  /// The least sizes that the strategy allows, with the same sequence: a model for which these fail is not for the
  /// strategy, with any batch. Nothing where there are none.
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
  std::function<bool(const StepSizes &)> isAccepted;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_STEPSIZES_H
