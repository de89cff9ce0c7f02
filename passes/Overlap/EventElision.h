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

/// Removes waits that are redundant in every call of the timeline, because the order of each stream and earlier waits
/// imply the same ordering. A redundant wait changes no vector clock (StreamClocks.h), so all of them can be removed at
/// once. Adjacent waits are first sorted by falling signal time, since a later signal may imply the others. Then the
/// class removes signals that are not the last one before any wait for their event, and renumbers events without gaps.
/// Takes one walk over the timeline: linear in its commands times the streams.
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
