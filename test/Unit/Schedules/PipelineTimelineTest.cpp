//===- PipelineTimelineTest.cpp - Timelines are complete, run to their end and overlap
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Unit/Schedules/TimelineHarness.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

using namespace bowline;
using namespace bowline::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

namespace {

std::set<std::string> namesOf(const PipelineTimeline &timeline) {
  std::set<std::string> names;
  for (const PipelineChannel &channel : timeline.channels)
    names.insert(channel.name);
  return names;
}

/// Every transfer that the placement needs is there once on both sides, on a channel of these two ranks.
void expectTransfers(const Placement &placement, const PipelineTimeline &timeline, bool trains) {
  std::map<std::tuple<int, StepKind, int, int>, int> found; // rank, kind, stage, microbatch: channel
  size_t numTransfers = 0, numExpected = 0;
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank)
    for (const TimelineStep &step : timeline.ranks[rank])
      if (!isComputation(step)) {
        found[{static_cast<int>(rank), step.kind, step.stage, step.microbatch}] = step.channel;
        ++numTransfers;
      }
  auto expectOne = [&](bool gradient, int from, int to, int microbatch) {
    int sender = placement.rankOf(from), receiver = placement.rankOf(to);
    if (sender == receiver)
      return;
    numExpected += 2;
    auto send = found.find({sender, gradient ? StepKind::SendGradient : StepKind::SendActivation, from, microbatch});
    auto receive =
        found.find({receiver, gradient ? StepKind::ReceiveGradient : StepKind::ReceiveActivation, to, microbatch});
    ASSERT_NE(send, found.end()) << from << " " << microbatch;
    ASSERT_NE(receive, found.end()) << to << " " << microbatch;
    ASSERT_EQ(send->second, receive->second);
    const PipelineChannel &channel = timeline.channels[send->second];
    EXPECT_EQ(channel.sender, sender);
    EXPECT_EQ(channel.receiver, receiver);
    EXPECT_TRUE(absl::StartsWith(channel.name, gradient ? "gradient." : "activation.")) << channel.name;
  };
  for (int stage = 0; stage + 1 < placement.numStages(); ++stage)
    for (int microbatch = 0; microbatch < timeline.numMicrobatches; ++microbatch) {
      expectOne(false, stage, stage + 1, microbatch);
      if (trains)
        expectOne(true, stage + 1, stage, microbatch);
    }
  EXPECT_EQ(numTransfers, numExpected);
}

} // namespace

TEST(PipelineTimeline, EveryTransferIsThereOnceOnBothSides) {
  for (const auto &[name, schedule] : timelineSchedules()) {
    SCOPED_TRACE(name);
    expectTransfers(schedule.placement, makeTimeline(schedule), /*trains=*/true);
  }
}

// Computations in the schedule's order; sends after their producers, receives before their users, by as much as
// asked for: or else right after another transfer.
TEST(PipelineTimeline, StepsAreWhereTheyBelong) {
  for (const auto &[name, schedule] : timelineSchedules())
    for (int distance : {0, 1, 2, 5, 1000}) {
      SCOPED_TRACE(absl::StrCat(name, " distance ", distance));
      PipelineTimeline timeline = makeTimeline(schedule, distance);
      for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
        const std::vector<Action> &actions = schedule.ranks[rank];
        // The action that needs or makes the transferred value.
        auto userOf = [&](const TimelineStep &transfer) {
          return std::find_if(actions.begin(), actions.end(),
                              [&](const Action &action) {
                                bool isUser = isGradient(transfer) ? action.kind == ActionKind::Backward ||
                                                                         action.kind == ActionKind::BackwardInput
                                                                   : action.kind == ActionKind::Forward;
                                return isUser && action.microbatch == transfer.microbatch &&
                                       schedule.stageOf(static_cast<int>(rank), action) == transfer.stage;
                              }) -
                 actions.begin();
        };
        int64_t computed = 0;
        const TimelineStep *before = nullptr;
        for (const TimelineStep &step : timeline.ranks[rank]) {
          if (isComputation(step)) {
            const Action &action = actions.at(computed++);
            EXPECT_EQ(static_cast<int>(step.kind), static_cast<int>(action.kind));
            EXPECT_EQ(step.stage, schedule.stageOf(static_cast<int>(rank), action));
            EXPECT_EQ(step.microbatch, action.microbatch);
          } else {
            int64_t user = isSend(step) ? static_cast<int64_t>(actions.size()) : userOf(step);
            int64_t earliest = isSend(step) ? userOf(step) + 1 : std::max<int64_t>(user - distance, 0);
            EXPECT_GE(computed, earliest) << describe(step);
            EXPECT_LE(computed, user) << describe(step);
            EXPECT_TRUE(computed == earliest || (before && !isComputation(*before))) << describe(step);
          }
          before = &step;
        }
        EXPECT_EQ(computed, static_cast<int64_t>(actions.size()));
      }
    }
}

TEST(PipelineTimeline, BothEndsOfAChannelHaveOneOrder) {
  for (const auto &[name, schedule] : timelineSchedules()) {
    SCOPED_TRACE(name);
    PipelineTimeline timeline = makeTimeline(schedule, 3);
    std::vector<std::vector<std::pair<int, int>>> sent(timeline.channels.size()), received(sent.size());
    for (const std::vector<TimelineStep> &steps : timeline.ranks)
      for (const TimelineStep &step : steps) {
        if (isComputation(step))
          continue;
        int sender = isSend(step) ? step.stage : step.stage + (isGradient(step) ? 1 : -1);
        (isSend(step) ? sent : received)[step.channel].push_back({sender, step.microbatch});
      }
    EXPECT_EQ(sent, received);
  }
}

// Each rank issues the next transfer that both of its ranks are at; a circle would leave some behind.
TEST(PipelineTimeline, OneOrderOfTransfersSuitsAllRanks) {
  for (const auto &[name, schedule] : timelineSchedules())
    for (int distance : {0, 1, 2, 5, 1000}) {
      SCOPED_TRACE(absl::StrCat(name, " distance ", distance));
      PipelineTimeline timeline = makeTimeline(schedule, distance);
      std::vector<size_t> positions(timeline.ranks.size());
      auto next = [&](int rank) -> const TimelineStep * {
        const std::vector<TimelineStep> &steps = timeline.ranks[rank];
        while (positions[rank] < steps.size() && isComputation(steps[positions[rank]]))
          ++positions[rank];
        return positions[rank] < steps.size() ? &steps[positions[rank]] : nullptr;
      };
      bool goesOn = true;
      while (goesOn) {
        goesOn = false;
        for (const PipelineChannel &channel : timeline.channels) {
          const TimelineStep *send = next(channel.sender), *receive = next(channel.receiver);
          if (!send || !receive || !isSend(*send) || isSend(*receive) || send->channel != receive->channel ||
              &timeline.channels[send->channel] != &channel)
            continue;
          ++positions[channel.sender], ++positions[channel.receiver];
          goesOn = true;
        }
      }
      for (size_t rank = 0; rank < positions.size(); ++rank)
        EXPECT_EQ(next(static_cast<int>(rank)), nullptr) << "rank " << rank << " waits forever";
    }
}

// A rank needs one queue per name, to or from one other rank. Names say nothing of the number of ranks.
TEST(PipelineTimeline, ChannelsWithOneNameShareNoRank) {
  for (const auto &[name, schedule] : timelineSchedules()) {
    SCOPED_TRACE(name);
    PipelineTimeline timeline = makeTimeline(schedule);
    std::set<std::pair<std::string, int>> ends;
    std::set<std::tuple<char, int, int>> edges;
    for (const PipelineChannel &channel : timeline.channels) {
      EXPECT_TRUE(ends.insert({channel.name, channel.sender}).second) << channel.name;
      EXPECT_TRUE(ends.insert({channel.name, channel.receiver}).second) << channel.name;
      EXPECT_TRUE(edges.insert({channel.name[0], channel.sender, channel.receiver}).second) << channel.name;
      if (size_t far = channel.name.find(".far."); far != std::string::npos)
        EXPECT_LT(std::stoi(channel.name.substr(far + 5)), 4 * schedule.placement.numChunks());
    }
  }
}

TEST(PipelineTimeline, NamesOfChannels) {
  auto namesOfSchedule = [](const char *name, int ranks) {
    return namesOf(makeTimeline(makeSchedule(choose(name), ranks, 2 * ranks).value()));
  };
  EXPECT_THAT(namesOfSchedule("interleaved:2", 1), IsEmpty());
  EXPECT_THAT(namesOfSchedule("zb_v", 1), IsEmpty());
  EXPECT_THAT(namesOfSchedule("1f1b", 2), UnorderedElementsAre("activation.even", "gradient.odd"));
  EXPECT_THAT(namesOfSchedule("interleaved:2", 2),
              UnorderedElementsAre("activation.even", "activation.wrap", "gradient.odd", "gradient.wrap"));
  EXPECT_THAT(namesOfSchedule("zb_v", 2),
              UnorderedElementsAre("activation.even", "activation.up.odd", "gradient.odd", "gradient.up.even"));
  for (int ranks = 3; ranks <= 9; ++ranks) {
    EXPECT_THAT(namesOfSchedule("zb_h1", ranks),
                UnorderedElementsAre("activation.even", "activation.odd", "gradient.even", "gradient.odd"));
    EXPECT_THAT(namesOfSchedule("interleaved:3", ranks),
                UnorderedElementsAre("activation.even", "activation.odd", "activation.wrap", "gradient.even",
                                     "gradient.odd", "gradient.wrap"));
    EXPECT_THAT(namesOfSchedule("dualpipe_v", ranks),
                UnorderedElementsAre("activation.even", "activation.odd", "activation.up.even", "activation.up.odd",
                                     "gradient.even", "gradient.odd", "gradient.up.even", "gradient.up.odd"));
  }
  PipelineTimeline timeline = makeTimeline(makeSchedule(choose("interleaved:2"), 3, 3).value());
  EXPECT_THAT(timeline.channels,
              ElementsAre(PipelineChannel{"activation.even", 0, 1}, PipelineChannel{"activation.odd", 1, 2},
                          PipelineChannel{"activation.wrap", 2, 0}, PipelineChannel{"gradient.odd", 1, 0},
                          PipelineChannel{"gradient.even", 2, 1}, PipelineChannel{"gradient.wrap", 0, 2}));
}

TEST(PipelineTimeline, RefusesWhatIsNotValid) {
  Schedule schedule = makeSchedule(choose("1f1b"), 2, 2).value();
  EXPECT_THAT(makePipelineTimeline(schedule, {-1}).status().message(), HasSubstr("prefetch distance of -1"));
  EXPECT_THAT(makeForwardTimeline(schedule.placement, {-1}).status().message(), HasSubstr("prefetch distance of -1"));
  schedule.ranks[1].pop_back();
  EXPECT_THAT(makePipelineTimeline(schedule).status().message(), HasSubstr("rank 1: B (or I) of microbatch 1"));
}

TEST(ForwardTimeline, OneMicrobatchThroughAllStages) {
  RandomSizes random(7);
  for (int i = 0; i < 200; ++i) {
    int ranks = random.integer(1, 8), chunks = random.integer(1, 4);
    Placement placement = i % 3 == 0   ? Placement::roundRobin(ranks, chunks)
                          : i % 3 == 1 ? Placement::vShape(ranks)
                                       : randomPlacement(ranks, chunks, random);
    PipelineTimeline timeline = makeForwardTimeline(placement, {random.integer(0, 3)}).value();
    expectTransfers(placement, timeline, /*trains=*/false);
    std::vector<int> forwards;
    for (const std::vector<TimelineStep> &steps : timeline.ranks)
      for (const TimelineStep &step : steps)
        if (isComputation(step)) {
          EXPECT_EQ(step.kind, StepKind::Forward);
          forwards.push_back(step.stage);
        }
    std::sort(forwards.begin(), forwards.end());
    ASSERT_EQ(forwards.size(), static_cast<size_t>(placement.numStages()));
    for (int stage = 0; stage < placement.numStages(); ++stage) {
      EXPECT_EQ(forwards[stage], stage);
      StageSlots expected;
      expected.receivedActivation = stage > 0;
      expected.sentActivation = stage + 1 < placement.numStages();
      EXPECT_EQ(timeline.slots[stage], expected);
    }
    ModelResult result = executeTimeline(placement, timeline, randomDurations(random, placement.numStages()));
    EXPECT_EQ(result.stuck, "");
    EXPECT_EQ(result.collision, "");
  }
}

TEST(ForwardTimeline, UsesTheChannelsOfTraining) {
  for (const auto &[name, schedule] : timelineSchedules()) {
    std::vector<PipelineChannel> training = makeTimeline(schedule).channels;
    std::vector<PipelineChannel> forward = makeForwardTimeline(schedule.placement).value().channels;
    ASSERT_EQ(2 * forward.size(), training.size()) << name;
    training.resize(forward.size());
    EXPECT_EQ(forward, training) << name;
  }
}
