//===- Validator.h - Proves that a schedule is complete and cannot hang
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_SCHEDULES_VALIDATOR_H
#define BOWLINE_PASSES_STAGES_SCHEDULES_VALIDATOR_H

#include "passes/Stages/Schedules/Schedule.h"

#include "absl/status/status.h"

namespace bowline {

/// OK when
/// - the table is well formed: an order per rank of the placement, chunks and microbatches in range, blocks of
/// overlapping
///   actions are a forward and a backward;
/// - it is complete: for each chunk and microbatch of each rank one F, and either one B, or one I and one W;
/// - nothing waits forever: run rank by rank in this order, every action gets its inputs (see Schedule);
/// - no transfer waits forever, where each rank sends to and receives from each other rank, activations and gradients
///   apart, in one stream with rendezvous and no buffers: what one rank sends in one order the other must consume in
///   that order.
/// These conditions are also necessary: a rejected schedule would deadlock, or compute something else than the step.
///
/// InvalidArgument names an action and its rank (both counted from 0), the action that it waits for, and the place of
/// that one, as in "rank 1, action 0: B0 of stage 1 waits for F0 of stage 1, which is action 1 of the same rank".
absl::Status validateSchedule(const Schedule &schedule);

/// Checks a schedule for executors without streams of communication: between two actions a rank sends the output of the
/// first and receives the input of the second, both at once and with rendezvous, and waits for both. OK when the
/// schedule does not hang then either; else FailedPrecondition names a rank that waits. The schedule must be valid.
absl::Status validateWithoutStreams(const Schedule &schedule);

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_SCHEDULES_VALIDATOR_H
