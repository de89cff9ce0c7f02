//===- StrategySchedule.h - The schedule that a strategy asks for
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STRATEGY_STRATEGYSCHEDULE_H
#define BOWLINE_PASSES_STRATEGY_STRATEGYSCHEDULE_H

#include "passes/Stages/Schedules/Schedule.h"
#include "passes/Strategy/Strategy.h"

namespace bowline {

/// Makes the schedule that a strategy names, published or a table (default: 1f1b), for the ranks along its stages' axis
/// and `microbatches`. Fails with a diagnostic at `location`, the strategy's line, if the schedule does not fit them.
mlir::FailureOr<Schedule> makeScheduleOf(const Strategy &strategy, int64_t microbatches, mlir::Location location);

} // namespace bowline

#endif // BOWLINE_PASSES_STRATEGY_STRATEGYSCHEDULE_H
