//===- Schedule.h - In which order the ranks of a pipeline work
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_SCHEDULES_SCHEDULE_H
#define BOWLINE_PASSES_STAGES_SCHEDULES_SCHEDULE_H

#include "absl/status/status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bowline {

/// The action of a rank on one chunk of the model and one microbatch.
enum class ActionKind : uint8_t {
  Forward,        // F
  Backward,       // B: both gradients
  BackwardInput,  // I: the gradient of the stage's input, for which the previous stage waits
  BackwardWeight, // W: the gradients of the parameters; may run any time after I
};

/// F, B, I or W.
char letterOf(ActionKind kind);

/// Returns whether it computes gradients of the stage's inputs.
inline bool isBackward(ActionKind kind) { return kind == ActionKind::Backward || kind == ActionKind::BackwardInput; }

struct Action {
  ActionKind kind = ActionKind::Forward;
  /// This action and the rank's next one, a forward and a backward, form one block. Both start when the inputs of both
  /// are complete, and both end when the block ends. An executor may interleave them to hide their communication.
  bool overlapsNext = false;
  uint16_t chunk = 0;
  int32_t microbatch = 0;

  bool operator==(const Action &) const = default;
};

/// The stages that each rank holds, counted from 0 over the whole pipeline ("virtual stages"), by rank and chunk.
class Placement {
public:
  Placement() = default;

  /// Chunk c of rank r is stage c * ranks + r: the model goes round all ranks once per chunk.
  static Placement roundRobin(int ranks, int chunks);

  /// Two chunks: stage r down and stage 2 * ranks - 1 - r back up, so that rank 0 holds the first stage and the last.
  static Placement vShape(int ranks);

  /// OK if every stage from 0 on occurs exactly once and every rank holds the same number of stages.
  static absl::Status verify(const std::vector<std::vector<int>> &stages);
  explicit Placement(std::vector<std::vector<int>> stages);

  int numRanks() const { return static_cast<int>(stages.size()); }
  int numChunks() const { return stages.empty() ? 0 : static_cast<int>(stages[0].size()); }
  int numStages() const { return static_cast<int>(owners.size()); }

  int stageOf(int rank, int chunk) const { return stages[rank][chunk]; }
  int rankOf(int stage) const { return owners[stage].rank; }
  int chunkOf(int stage) const { return owners[stage].chunk; }

  bool operator==(const Placement &other) const { return stages == other.stages; }

private:
  struct Owner {
    int rank, chunk;
  };
  std::vector<std::vector<int>> stages;
  std::vector<Owner> owners;
};

/// The order of each rank's actions for all microbatches of a step. A schedule has no times: an action starts when the
/// previous action of its rank has ended and its inputs are complete.
///
/// Inputs. F of stage s needs F of stage s - 1. B or I of stage s needs F of stage s, and B or I of stage s + 1. W of
/// stage s needs I of stage s. All of the same microbatch.
struct Schedule {
  Placement placement;
  int numMicrobatches = 0;
  std::vector<std::vector<Action>> ranks;

  int stageOf(int rank, const Action &action) const { return placement.stageOf(rank, action.chunk); }
  bool operator==(const Schedule &) const = default;
};

/// "F3 of stage 2".
std::string describe(const Schedule &schedule, int rank, const Action &action);

/// The most microbatches * stages of a schedule. More would take hundreds of megabytes.
constexpr int64_t kMaxScheduledForwards = int64_t{1} << 24;

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_SCHEDULES_SCHEDULE_H
