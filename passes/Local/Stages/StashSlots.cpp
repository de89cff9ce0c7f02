//===- StashSlots.cpp - How many microbatches a stash must hold at once
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Stages/StashSlots.h"

#include <algorithm>
#include <map>

using namespace bowline;

int64_t bowline::slotsInOrder(const std::vector<TimelineStep> &steps, std::pair<int64_t, StepKind> writer,
                              const std::set<std::pair<int64_t, StepKind>> &readers) {
  std::map<int, size_t> lastUse; // by microbatch
  for (size_t position = 0; position < steps.size(); ++position)
    if (readers.count({steps[position].stage, steps[position].kind}))
      lastUse[steps[position].microbatch] = position;
  int64_t slots = 1;
  std::set<int> alive;
  for (size_t position = 0; position < steps.size(); ++position) {
    const TimelineStep &step = steps[position];
    if (writer == std::pair<int64_t, StepKind>(step.stage, step.kind)) {
      alive.insert(step.microbatch);
      slots = std::max<int64_t>(slots, *alive.rbegin() - *alive.begin() + 1);
    }
    if (auto last = lastUse.find(step.microbatch); last != lastUse.end() && last->second == position)
      alive.erase(step.microbatch);
  }
  return slots;
}
