//===- ScheduleHarness.cpp - Random schedules, and an independent judge of them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Unit/Schedules/ScheduleHarness.h"

#include <deque>
#include <map>
#include <set>
#include <tuple>

using namespace bowline;
using namespace bowline::test;

const std::vector<std::string> &bowline::test::publishedSchedules() {
  static const std::vector<std::string> schedules = {
      "gpipe",           "1f1b",  "interleaved:1", "interleaved:2", "interleaved:3", "breadth_first:1",
      "breadth_first:4", "zb_h1", "zb_h2",         "zb_v",          "dualpipe_v"};
  return schedules;
}

ScheduleChoice bowline::test::choose(const std::string &text) { return parseScheduleChoice(text).value(); }

Schedule bowline::test::randomSchedule(RandomSizes &random) {
  const std::vector<std::string> &names = publishedSchedules();
  ScheduleChoice choice = choose(names[random.integer(0, static_cast<int>(names.size()) - 1)]);
  if (choice.kind == ScheduleKind::Interleaved || choice.kind == ScheduleKind::BreadthFirst)
    choice.chunks = random.integer(1, 5);
  int ranks = random.integer(1, 7), microbatches = random.integer(1, 20);
  if (choice.kind == ScheduleKind::Interleaved)
    microbatches = ranks * random.integer(1, 4);
  if (choice.kind == ScheduleKind::DualPipeV)
    microbatches = 2 * ranks + random.integer(0, 9);
  return makeSchedule(choice, ranks, microbatches).value();
}

namespace {

/// The world of runsByHand.
class Hands {
public:
  explicit Hands(const Schedule &schedule) : schedule(schedule), next(schedule.ranks.size()) {}

  bool run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (size_t rank = 0; rank < next.size(); ++rank)
        while (next[rank] < schedule.ranks[rank].size() && step(static_cast<int>(rank)))
          moved = true;
    }
    for (size_t rank = 0; rank < next.size(); ++rank)
      if (next[rank] < schedule.ranks[rank].size())
        return false;
    return true;
  }

private:
  using Item = std::tuple<char, int, int>; // 'f' or 'b', stage, microbatch

  /// Its inputs on this rank and in the queues, all or none.
  bool step(int rank) {
    size_t begin = next[rank], end = begin + (schedule.ranks[rank][begin].overlapsNext ? 2 : 1);
    std::map<std::tuple<int, char>, size_t> taken; // from the queue of a sender
    for (size_t i = begin; i < end; ++i) {
      const Action &action = schedule.ranks[rank][i];
      int stage = schedule.stageOf(rank, action), last = schedule.placement.numStages() - 1;
      std::vector<Item> needed;
      if (action.kind == ActionKind::Forward && stage > 0)
        needed.push_back({'f', stage - 1, action.microbatch});
      if (action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardInput) {
        needed.push_back({'f', stage, action.microbatch});
        if (stage < last)
          needed.push_back({'b', stage + 1, action.microbatch});
      }
      if (action.kind == ActionKind::BackwardWeight)
        needed.push_back({'b', stage, action.microbatch});
      for (const Item &item : needed) {
        auto [direction, from, microbatch] = item;
        int owner = schedule.placement.rankOf(from);
        if (owner == rank) {
          if (!made.count(item))
            return false;
          continue;
        }
        const std::deque<Item> &queue = queues[{owner, rank, direction}];
        size_t &index = taken[{owner, direction}];
        if (index >= queue.size() || queue[index] != item)
          return false;
        ++index;
      }
    }
    for (auto [from, count] : taken)
      for (size_t i = 0; i < count; ++i)
        queues[{std::get<0>(from), rank, std::get<1>(from)}].pop_front();
    for (size_t i = begin; i < end; ++i)
      finish(rank, schedule.ranks[rank][i]);
    next[rank] = end;
    return true;
  }

  void finish(int rank, const Action &action) {
    if (action.kind == ActionKind::BackwardWeight)
      return;
    char direction = action.kind == ActionKind::Forward ? 'f' : 'b';
    int stage = schedule.stageOf(rank, action);
    made.insert({direction, stage, action.microbatch});
    int to = direction == 'f' ? stage + 1 : stage - 1;
    if (to < 0 || to == schedule.placement.numStages() || schedule.placement.rankOf(to) == rank)
      return;
    queues[{rank, schedule.placement.rankOf(to), direction}].push_back({direction, stage, action.microbatch});
  }

  const Schedule &schedule;
  std::vector<size_t> next;
  std::set<Item> made;
  std::map<std::tuple<int, int, char>, std::deque<Item>> queues;
};

} // namespace

bool bowline::test::runsByHand(const Schedule &schedule) { return Hands(schedule).run(); }
