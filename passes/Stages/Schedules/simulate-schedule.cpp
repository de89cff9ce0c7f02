//===- simulate-schedule.cpp - How long a step of a schedule takes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// simulate-schedule SCHEDULE RANKS MICROBATCHES TRANSFER F I W [F I W of each further stage]
//
// Prints the ticks of a step as the simulator has them (Simulator.h), in which transfers run beside the actions. No
// implementation of the schedule can hide the ticks that TRANSFER adds. scripts/bench-overlap.py asks for them.
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/ScheduleChoice.h"
#include "passes/Stages/Schedules/Simulator.h"

#include "absl/strings/numbers.h"

#include <cstdio>
#include <vector>

using namespace bowline;

static absl::StatusOr<int64_t> simulate(absl::string_view name, const std::vector<int64_t> &numbers) {
  absl::StatusOr<ScheduleChoice> choice = parseScheduleChoice(name);
  if (!choice.ok())
    return choice.status();
  absl::StatusOr<Schedule> schedule = makeSchedule(*choice, static_cast<int>(numbers[0]), static_cast<int>(numbers[1]));
  if (!schedule.ok())
    return schedule.status();
  ScheduleCosts costs{{}, numbers[2], {}};
  for (size_t i = 3; i + 2 < numbers.size(); i += 3)
    costs.stages.push_back({numbers[i], numbers[i + 1], numbers[i + 2], {}});
  absl::StatusOr<SimulatedStep> step = simulateSchedule(*schedule, costs);
  if (!step.ok())
    return step.status();
  return step->makespan;
}

int main(int argc, char **argv) {
  std::vector<int64_t> numbers;
  for (int i = 2; i < argc; ++i)
    if (!absl::SimpleAtoi(argv[i], &numbers.emplace_back())) {
      std::fprintf(stderr, "simulate-schedule: error: '%s' is not a number\n", argv[i]);
      return 1;
    }
  if (numbers.size() < 6 || numbers.size() % 3 != 0) {
    std::fprintf(stderr, "simulate-schedule: error: give SCHEDULE RANKS MICROBATCHES TRANSFER F I W ...\n");
    return 1;
  }
  absl::StatusOr<int64_t> ticks = simulate(argv[1], numbers);
  if (!ticks.ok()) {
    std::fprintf(stderr, "simulate-schedule: error: %s\n", std::string(ticks.status().message()).c_str());
    return 1;
  }
  std::printf("%lld\n", static_cast<long long>(*ticks));
  return 0;
}
