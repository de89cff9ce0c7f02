//===- Generators.h - The published pipeline schedules
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_SCHEDULES_GENERATORS_H
#define BOWLINE_PASSES_STAGES_SCHEDULES_GENERATORS_H

#include "passes/Stages/Schedules/Schedule.h"

#include "absl/status/statusor.h"

namespace bowline {

// Pure functions from (ranks P, microbatches M, chunks per rank V) to the order of actions. Bubbles and numbers of
// activations in flight are in PublishedFigures.h.
//
// All need 1 <= P, 1 <= M, 1 <= V < 65536 and P * V * M <= kMaxScheduledForwards. Further needs of a schedule are said
// below; InvalidArgument names the nearest M that fits.

/// All forwards, then all backwards. Huang et al. 2019, "GPipe", arXiv:1811.06965, section 2.3.
absl::StatusOr<Schedule> makeGPipe(int ranks, int microbatches);

/// Rank r starts with min(M, P - 1 - r) forwards; then each forward is followed by the oldest backward. Narayanan et
/// al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", arXiv:2104.04473,
/// section 2.2.1 (PipeDream-Flush).
absl::StatusOr<Schedule> make1F1B(int ranks, int microbatches);

/// 1F1B with V chunks per rank, placed round robin. A rank runs P microbatches through a chunk before it turns to the
/// next chunk. Section 2.2.2 of the same paper. M must be a multiple of P.
absl::StatusOr<Schedule> makeInterleaved(int ranks, int microbatches, int chunks);

/// A rank runs all microbatches through a chunk before it turns to the next chunk, so that a chunk's parameters and
/// gradients are gathered and reduced once a step. Lamy-Poirier 2023, "Breadth-First Pipeline Parallelism",
/// arXiv:2211.05953. With M < P ranks idle until the first microbatch has passed through all ranks.
absl::StatusOr<Schedule> makeBreadthFirst(int ranks, int microbatches, int chunks);

/// 1F1B with split backwards. The first weight gradients wait until P activations are held, the last ones fill the end.
/// Qi et al. 2023, "Zero Bubble Pipeline Parallelism", arXiv:2401.10241, section 2 (ZB-H1).
absl::StatusOr<Schedule> makeZbH1(int ranks, int microbatches);

/// As makeZbH1, but with up to 2P - 1 activations per rank: more forwards fill the bubble before the first backward.
/// Same paper (ZB-H2).
absl::StatusOr<Schedule> makeZbH2(int ranks, int microbatches);

/// Two chunks per rank in V shape. Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", arXiv:2405.15362,
/// and section 6 of the paper above (ZB-V). The order is the one for F = I = W.
absl::StatusOr<Schedule> makeZbV(int ranks, int microbatches);

/// DualPipe of DeepSeek-V3 (arXiv:2412.19437, section 3.2.1) cut in half: two chunks per rank in V shape instead of two
/// copies of the model. Forwards and backwards of the steady state are pairs that may overlap. M must be at least 2P.
absl::StatusOr<Schedule> makeDualPipeV(int ranks, int microbatches);

/// InvalidArgument unless the sizes are positive and the schedule not too large.
absl::Status verifyScheduleSize(int ranks, int microbatches, int chunks);

// The conditions of schedules that have more than that. Their messages name the fault, and advise nothing.
absl::Status verifyInterleaved(int ranks, int microbatches, int chunks);
absl::Status verifyZbV(int ranks, int microbatches);
absl::Status verifyDualPipeV(int ranks, int microbatches);

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_SCHEDULES_GENERATORS_H
