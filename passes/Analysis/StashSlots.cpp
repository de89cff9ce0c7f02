//===- StashSlots.cpp - How many microbatches a stash must hold at once
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/StashSlots.h"

#include <algorithm>
#include <map>

using namespace bowline;

int64_t bowline::slotsInOrder(llvm::ArrayRef<MicrobatchStep> steps, int64_t writer, const std::set<int64_t> &readers) {
  std::map<int64_t, size_t> lastUse; // by microbatch
  for (size_t position = 0; position < steps.size(); ++position)
    if (readers.count(steps[position].function))
      lastUse[steps[position].microbatch] = position;
  int64_t slots = 1;
  std::set<int64_t> alive;
  for (size_t position = 0; position < steps.size(); ++position) {
    const MicrobatchStep &step = steps[position];
    if (step.function == writer) {
      alive.insert(step.microbatch);
      slots = std::max(slots, *alive.rbegin() - *alive.begin() + 1);
    }
    if (auto last = lastUse.find(step.microbatch); last != lastUse.end() && last->second == position)
      alive.erase(step.microbatch);
  }
  return slots;
}
