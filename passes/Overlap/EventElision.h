//===- EventElision.h - Removal of waits for commands that are over anyway
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_OVERLAP_EVENTELISION_H
#define BOWLINE_PASSES_OVERLAP_EVENTELISION_H

#include "dialects/Plan/PlanOps.h"
#include "llvm/ADT/DenseSet.h"

namespace bowline {

/// Removes the waits of a program that order nothing in any call of the timeline: the streams' own order and the waits
/// before them imply the same. Such a wait changes no clock, so all of them go at once and the order of commands stays
/// the same. Of waits next to each other the one for the latest signal comes first, since it may imply the others. Then
/// signals go that are not the last one before any wait for their event, and events are numbered without gaps. One walk
/// over the timeline: linear in its commands times the streams.
class EventElision {
public:
  explicit EventElision(plan::ProgramOp program) : program(program) {}

  struct Result {
    int64_t waits = 0, signals = 0; ///< removed
  };
  Result run();

private:
  void sortWaits();
  int64_t removeWaits();
  int64_t removeSignals();
  void removeEmptyFirstSegment();
  void renumber();

  plan::ProgramOp program;
};

} // namespace bowline

#endif // BOWLINE_PASSES_OVERLAP_EVENTELISION_H
