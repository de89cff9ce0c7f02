//===- ScheduleHarness.h - Random schedules, and an independent judge of them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_SCHEDULES_SCHEDULEHARNESS_H
#define BOWLINE_TEST_UNIT_SCHEDULES_SCHEDULEHARNESS_H

#include "passes/Stages/Schedules/ScheduleChoice.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace bowline::test {

/// Every published schedule, with some numbers of chunks.
const std::vector<std::string> &publishedSchedules();

ScheduleChoice choose(const std::string &text);

class RandomSizes {
public:
  explicit RandomSizes(uint64_t seed) : engine(seed) {}
  /// From first to last, both included.
  int integer(int first, int last) { return std::uniform_int_distribution<int>(first, last)(engine); }

private:
  std::mt19937_64 engine;
};

/// A published schedule of random kind and size; microbatches fit the kind.
Schedule randomSchedule(RandomSizes &random);

/// Whether the schedule runs to its end: ranks in turns, one action at a time, each output in a set or, between ranks,
/// in a queue per (sender, receiver, direction) whose front the receiver must need. Slow, and shares no code
/// with the validator. Every action must be there.
bool runsByHand(const Schedule &schedule);

} // namespace bowline::test

#endif // BOWLINE_TEST_UNIT_SCHEDULES_SCHEDULEHARNESS_H
