//===- ScheduleChoice.h - The schedule that a user asks for
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_SCHEDULES_SCHEDULECHOICE_H
#define BOWLINE_PASSES_STAGES_SCHEDULES_SCHEDULECHOICE_H

#include "passes/Stages/Schedules/Schedule.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <optional>
#include <string>
#include <vector>

namespace bowline {

enum class ScheduleKind { GPipe, OneForwardOneBackward, Interleaved, BreadthFirst, ZbH1, ZbH2, ZbV, DualPipeV, Table };

struct ScheduleChoice {
  ScheduleKind kind = ScheduleKind::OneForwardOneBackward;
  /// The number of chunks per rank; 0 for a table, which states it itself.
  int chunks = 1;
  /// The file of a table; empty for other schedules.
  std::string file;

  bool operator==(const ScheduleChoice &) const = default;
};

/// gpipe | 1f1b | interleaved:V | breadth_first:V | zb_h1 | zb_h2 | zb_v | dualpipe_v | FILE.csv
extern const char kScheduleSyntax[];

/// Parses kScheduleSyntax. V is 1 to 65535. InvalidArgument names the nearest valid choice. Does not open a file.
absl::StatusOr<ScheduleChoice> parseScheduleChoice(absl::string_view text);

/// Returns InvalidArgument exactly if makeSchedule does for these sizes, without making the schedule. The message names
/// the fault but suggests no other sizes, since valid sizes depend on more than the schedule.
absl::Status checkSchedule(const ScheduleChoice &choice, int ranks, int microbatches);

/// For a schedule that restricts the number of microbatches: one with as many chunks per rank that takes any number.
std::optional<ScheduleChoice> laxerSchedule(const ScheduleChoice &choice);

/// Returns whether the schedule splits backward passes in two, so that there is no whole backward pass that could
/// recompute activations. Must not be called for Table.
bool dividesBackwards(const ScheduleChoice &choice);

/// The text that parseScheduleChoice reads.
std::string toString(const ScheduleChoice &choice);

/// The published schedule. InvalidArgument when its conditions do not hold (see Generators.h), and for Table, which is
/// read by parseScheduleTable (see ScheduleTable.h).
absl::StatusOr<Schedule> makeSchedule(const ScheduleChoice &choice, int ranks, int microbatches);

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_SCHEDULES_SCHEDULECHOICE_H
