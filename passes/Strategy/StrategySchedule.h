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

/// The published schedule or the table that a strategy names, 1f1b where it names none, for its stages' ranks and so
/// many microbatches. Fails with a diagnostic at `location`, that of the strategy's line, where they do not fit.
mlir::FailureOr<Schedule> makeScheduleOf(const Strategy &strategy, int64_t microbatches, mlir::Location location);

} // namespace bowline

#endif // BOWLINE_PASSES_STRATEGY_STRATEGYSCHEDULE_H
