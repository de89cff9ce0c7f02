//===- PublishedFigures.h - Figures of the schedules in the papers
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_SCHEDULES_PUBLISHEDFIGURES_H
#define BOWLINE_PASSES_STAGES_SCHEDULES_PUBLISHEDFIGURES_H

#include "passes/Stages/Schedules/ScheduleChoice.h"
#include "passes/Stages/Schedules/Simulator.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace bowline {

/// Bubble and activations in flight as published, to be compared with those simulated. P ranks, M microbatches, V
/// chunks per rank; F, I, W and B = I + W are the costs of *one chunk* (papers that have V chunks and count whole ranks
/// divide by V). None of the papers counts transfers.
///
///   schedule       bubble                   activations        holds for
///   gpipe          (P-1)(F+B)               M                  all costs
///   1f1b           (P-1)(F+B)               min(M, P-r)        all costs
///   interleaved    (P-1)(F+B)               PV + P-1-2r [1]    all costs
///   breadth_first  (P-1)(F+B) [2]           MV                 all costs
///   zb_h1          (P-1)(F+I-W)             P                  F = W <= I, M >= P
///   zb_h2          (P-1)(F+I-2W), inner     2P-1               F = W <= I, M >= 2P-1
///   zb_v           0, inner                 2P                 F = I = W, M >= 2P-1
///   dualpipe_v     (P-1)(F&B+B-3W)          2P+1               F = I = W, F&B <= F+B, M >= 2P
///
/// Activations are of rank r where r is there, else of every rank: (chunk, microbatch) pairs, until B; with split
/// backwards until W. "Inner" bubbles are those between a rank's first and last action (see SimulatedRank). Of
/// dualpipe_v, where overlapping makes ranks differ, it is the largest over the ranks; P is half of the paper's PP. [1]
/// At most MV. [2] With M < P: plus (V-1)(P-M)(F+B); papers assume M >= P.
///
/// Sources: Generators.h; for the activations of interleaved Korthikanti et al. 2022, "Reducing Activation
/// Recomputation in Large Transformer Models", arXiv:2205.05198, section 4.2.3: 1 + (P-1)/(PV) times those of 1f1b; for
/// dualpipe_v the table in section 3.2.1 of the DeepSeek-V3 report.
struct PublishedFigures {
  int64_t bubble = 0;
  /// `bubble` is an inner one.
  bool isInner = false;
  /// Per rank.
  std::vector<int> activations;
};

/// Returns nothing where the conditions above do not hold, for tables, and for costs that differ between stages or with
/// transfers.
std::optional<PublishedFigures> findPublishedFigures(const ScheduleChoice &choice, int ranks, int microbatches,
                                                     const ScheduleCosts &costs);

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_SCHEDULES_PUBLISHEDFIGURES_H
