//===- StrategySchedule.cpp - The schedule that a strategy asks for
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Strategy/StrategySchedule.h"
#include "passes/Stages/Schedules/ScheduleTable.h"

using namespace mlir;
using namespace bowline;

FailureOr<Schedule> bowline::makeScheduleOf(const Strategy &strategy, int64_t microbatches, Location location) {
  if (microbatches > INT32_MAX)
    return emitError(location) << "a step of " << microbatches << " microbatches is too long; the longest has "
                               << INT32_MAX;
  // A mesh has fewer than 2^31 ranks.
  int ranks = static_cast<int>(strategy.getSize(strategy.stageAxis)), count = static_cast<int>(microbatches);
  ScheduleChoice choice = strategy.schedule.value_or(ScheduleChoice());
  absl::StatusOr<Schedule> schedule = choice.kind == ScheduleKind::Table
                                          ? parseScheduleTable(strategy.scheduleTable, choice.file, ranks, count)
                                          : makeSchedule(choice, ranks, count);
  if (!schedule.ok())
    return emitError(location) << std::string(schedule.status().message());
  return std::move(*schedule);
}
