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
  /// The virtual stage, counted over the whole pipeline, that the step belongs to; the step's rank holds this stage.
  int stage = 0;
  int microbatch = 0;
  /// The index of a transfer's channel in PipelineTimeline::channels.
  int channel = kNoChannel;

  bool operator==(const TimelineStep &) const = default;
};

/// "Forward 3 of stage 2".
std::string describe(const TimelineStep &step);

/// A one-way channel from one rank to another. The receiver receives messages in the order in which the sender sends.
///
/// Channels with equal names have no rank in common. So a rank needs only one queue per name, for sends only or for
/// receives only, and one communicator of two members per name. The names do not depend on the number of ranks:
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

/// The numbers of buffer slots of a stage, per kind of value. Microbatch m uses slot m % slots, and no two live
/// microbatches share a slot. 0 if the stage has no values of the kind.
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
  /// Slots of values that I computes for W, which are alive from I until the end of W.
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

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_SCHEDULES_PIPELINETIMELINE_H
