//===- PipelineTimeline.h - Steps that each rank of a pipeline issues, transfers included
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_SCHEDULES_PIPELINETIMELINE_H
#define BOWLINE_PASSES_STAGES_SCHEDULES_PIPELINETIMELINE_H

#include "passes/Stages/Schedules/Schedule.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace bowline {

// How a timeline is executed. One thread per rank issues the rank's steps in their order. A computation runs where it
// is issued, and the next step is issued after it. A transfer is handed to the queue of its channel and runs beside the
// steps that follow; a queue works in order. A send is a rendezvous: it ends when the receive of the other rank has
// run, and nothing is buffered between them. A computation waits for:
//   - the receive of its own stage and microbatch, where the neighbouring stage is on another rank: F for
//     ReceiveActivation, B and I for ReceiveGradient;
//   - the slot that it writes for a send: the send that had slot m % slots before microbatch m must have ended before F
//     (sentActivation), B or I (sentGradient) of m starts. Where microbatches are in order, it is that of m - slots.
// Receives need not wait for their slots: when one is issued, the computation that used the slot last has ended. Steps
// of training follow each other when all transfers of the step have ended.
//
// All ranks issue their transfers in one order: that in which they take place in a run of the schedule. Therefore ranks
// never wait for each other in a circle, even where a device starts transfers in the order of their issue and where a
// computation holds up all commands issued after it (checker/DeadlockCheck.h has the argument). Receives that are
// issued ahead of their order would: of two neighbours in 1F1B, each would receive before it sends.

enum class StepKind : uint8_t {
  Forward,
  Backward,
  BackwardInput,
  BackwardWeight,
  SendActivation,    // the result of the stage's F, to the stage after it
  ReceiveActivation, // the input of the stage's F, from the stage before it
  SendGradient,      // the result of the stage's B or I, to the stage before it
  ReceiveGradient,   // the input of the stage's B or I, from the stage after it
};

constexpr int kNoChannel = -1;

struct TimelineStep {
  StepKind kind = StepKind::Forward;
  /// The stage, counted over the whole pipeline ("virtual stage"), of the rank whose step it is.
  int stage = 0;
  int microbatch = 0;
  /// The index of a transfer's channel in PipelineTimeline::channels.
  int channel = kNoChannel;

  bool operator==(const TimelineStep &) const = default;
};

/// "Forward 3 of stage 2".
std::string describe(const TimelineStep &step);

/// A channel leads from one rank to another. The sends at the one and the receives at the other have the same order.
///
/// Channels that share a name have no rank in common. So a rank needs one queue per name, with only sends or only
/// receives, and one communicator of two members per name and rank. The names do not depend on the number of ranks:
///   activation.even, .odd      to the next rank, by the sender's parity
///   activation.up.even, .odd   to the rank before, as in V shapes
///   activation.wrap            from the last rank to rank 0, as in round robin with several chunks
///   activation.far.N           between other ranks, in tables with a placement of their own; N < 4 * chunks
///   gradient. ...              the same edges backwards: gradient.even goes from an even rank to the one before it
struct PipelineChannel {
  std::string name;
  int sender = 0;
  int receiver = 0;

  bool operator==(const PipelineChannel &) const = default;
};

/// The number of microbatches for which a stage must have buffers at once. Microbatch m is in slot m % slots; no two
/// that are alive share one. 0 if there is no such value.
///
/// If the neighbouring stage is on the same rank, nothing is transferred: F writes the input of the next stage's F.
/// Then sentActivation of a stage and receivedActivation of the next one are the same buffers, and equal; so are
/// sentGradient and receivedGradient of the stage before.
struct StageSlots {
  /// Slots of stashed values, which are alive from F until the end of B, or of W.
  int stash = 0;
  /// Slots of received values, which are alive from the issue of the receive until the end of B, or of W.
  int receivedActivation = 0;
  int receivedGradient = 0;
  /// Slots of sent values, which are alive from F, or B or I, until the end of the send. There are as many as are
  /// alive at the schedule's unit costs, with transfers that take next to no time, half of a forward, and a
  /// forward; at least 2, unless there is but one microbatch. At such costs no computation waits for a slot, and at
  /// no costs forever. (2 would not always do: in breadth_first the last rank sends to rank 0 long before that one
  /// receives.)
  int sentActivation = 0;
  int sentGradient = 0;
  /// Slots of values that I hands to W, which are alive from I until the end of W.
  int weightInputs = 0;

  bool operator==(const StageSlots &) const = default;
};

struct PipelineTimeline {
  int numMicrobatches = 0;
  /// Per rank.
  std::vector<std::vector<TimelineStep>> ranks;
  /// Activations first, then gradients; each in the order of their first stage.
  std::vector<PipelineChannel> channels;
  /// Per stage.
  std::vector<StageSlots> slots;
};

struct TimelineOptions {
  /// The receives of a computation are issued up to so many computations before it, to run beside them: as early as the
  /// order of all transfers allows. The slots of received values grow by at most as many, where a stage takes its
  /// microbatches in order.
  int prefetchDistance = 1;
};

/// The timeline of a training step. Computations are in the schedule's order (actions that overlap: one after the
/// other); sends come as early as the order of all transfers allows. It never hangs, however long its steps take.
/// InvalidArgument for a schedule that is not valid (see Validator.h) and for a negative distance.
absl::StatusOr<PipelineTimeline> makePipelineTimeline(const Schedule &schedule, const TimelineOptions &options = {});

/// The forward pass of one microbatch through all stages, for evaluation. Nothing is stashed. Its channels are those
/// for activations of every training timeline with this placement. InvalidArgument for a negative distance.
absl::StatusOr<PipelineTimeline> makeForwardTimeline(const Placement &placement, const TimelineOptions &options = {});

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_SCHEDULES_PIPELINETIMELINE_H
