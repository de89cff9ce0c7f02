//===- ValidatorTest.cpp - Good schedules pass, broken ones are refused with the reason
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/Validator.h"
#include "test/Unit/Schedules/ScheduleHarness.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

using namespace bowline;
using namespace bowline::test;
using testing::HasSubstr;

namespace {

constexpr Action F(int32_t microbatch, uint16_t chunk = 0) { return {ActionKind::Forward, false, chunk, microbatch}; }
constexpr Action B(int32_t microbatch, uint16_t chunk = 0) { return {ActionKind::Backward, false, chunk, microbatch}; }
constexpr Action I(int32_t microbatch) { return {ActionKind::BackwardInput, false, 0, microbatch}; }
constexpr Action W(int32_t microbatch) { return {ActionKind::BackwardWeight, false, 0, microbatch}; }

std::string messageOf(int chunks, int microbatches, std::vector<std::vector<Action>> ranks) {
  int numRanks = static_cast<int>(ranks.size());
  Schedule schedule{Placement::roundRobin(numRanks, chunks), microbatches, std::move(ranks)};
  absl::Status status = validateSchedule(schedule);
  return status.ok() ? "ok" : std::string(status.message());
}

/// Of an action that others of its rank depend on: one that does. F before B or I, I before W.
std::optional<size_t> findDependent(const std::vector<Action> &actions, size_t on) {
  for (size_t i = 0; i < actions.size(); ++i) {
    bool isSame = actions[i].chunk == actions[on].chunk && actions[i].microbatch == actions[on].microbatch;
    bool depends = actions[on].kind == ActionKind::Forward
                       ? isBackward(actions[i].kind)
                       : actions[on].kind == ActionKind::BackwardInput && actions[i].kind == ActionKind::BackwardWeight;
    if (isSame && depends)
      return i;
  }
  return std::nullopt;
}

/// Swaps the actions, not which positions overlap: an overlap stays a forward and a backward for the swaps below.
void swapActions(std::vector<Action> &actions, size_t one, size_t other) {
  std::swap(actions[one], actions[other]);
  std::swap(actions[one].overlapsNext, actions[other].overlapsNext);
}

} // namespace

TEST(Validator, AcceptsHandWrittenOnes) {
  EXPECT_EQ(messageOf(1, 1, {{F(0), B(0)}}), "ok");
  EXPECT_EQ(messageOf(1, 1, {{F(0), I(0), W(0)}, {F(0), B(0)}}), "ok");
  EXPECT_EQ(messageOf(2, 1, {{F(0), F(0, 1), B(0, 1), B(0)}, {F(0), F(0, 1), B(0, 1), B(0)}}), "ok");
}

TEST(Validator, NamesWhatIsMissingOrTwice) {
  EXPECT_EQ(messageOf(1, 2, {{F(0), F(1), B(0)}}), "rank 0: B (or I) of microbatch 1 on stage 0 is missing");
  EXPECT_EQ(messageOf(1, 1, {{F(0), I(0)}}), "rank 0: W (or B) of microbatch 0 on stage 0 is missing");
  EXPECT_EQ(messageOf(1, 1, {{F(0), B(0)}, {B(0)}}), "rank 1: F of microbatch 0 on stage 1 is missing");
  EXPECT_EQ(messageOf(1, 1, {{F(0), B(0), F(0)}}),
            "rank 0, action 2: F0 of stage 0 was done already by action 0, F0 of stage 0");
  EXPECT_EQ(messageOf(1, 1, {{F(0), B(0), W(0)}}),
            "rank 0, action 2: W0 of stage 0 was done already by action 1, B0 of stage 0");
}

TEST(Validator, NamesWhatWaitsForWhat) {
  EXPECT_EQ(messageOf(1, 1, {{F(0), B(0)}, {B(0), F(0)}}),
            "rank 1, action 0: B0 of stage 1 waits for F0 of stage 1, which is action 1 of the same rank");
  EXPECT_EQ(messageOf(1, 1, {{F(0), W(0), I(0)}}),
            "rank 0, action 1: W0 of stage 0 waits for I0 of stage 0, which is action 2 of the same rank");
  // Rank 0 wants the gradient of 0 before it sends 1; rank 1 wants 1 before it makes that gradient.
  EXPECT_EQ(messageOf(1, 2, {{F(0), B(0), F(1), B(1)}, {F(0), F(1), B(0), B(1)}}),
            "rank 0, action 1: B0 of stage 0 waits for B0 of stage 1, which is action 2 of rank 1; "
            "rank 1, action 1: F1 of stage 1 waits for F1 of stage 0, which is action 2 of rank 0");
}

// Rank 0 wants its second chunk before it sends microbatch 1, which rank 1 wants before all else; the others wait for
// their neighbours.
TEST(Validator, NamesTheBeginOfALongCircle) {
  Schedule schedule = makeSchedule(choose("breadth_first:2"), 12, 12).value();
  std::swap(schedule.ranks[0][1], schedule.ranks[0][12]);
  std::swap(schedule.ranks[1][0], schedule.ranks[1][1]);
  std::string message(validateSchedule(schedule).message());
  EXPECT_THAT(message, HasSubstr("; and so on, 12 ranks in a circle"));
  EXPECT_EQ(std::count(message.begin(), message.end(), ';'), 6);
}

TEST(Validator, NamesTransfersOutOfOrder) {
  EXPECT_EQ(
      messageOf(1, 2, {{F(0), F(1), B(0), B(1)}, {F(1), F(0), B(0), B(1)}}),
      "rank 1, action 0: needs the activation of microbatch 1 from stage 0, but rank 0 sends that of microbatch 0 "
      "from stage 0 first (its action 0); make both ranks take them in the same order");
  EXPECT_THAT(messageOf(1, 2, {{F(0), F(1), B(0), B(1)}, {F(0), F(1), B(1), B(0)}}),
              HasSubstr("rank 0, action 2: needs the gradient of microbatch 0 from stage 1, but rank 1 sends that of "
                        "microbatch 1"));
}

TEST(Validator, RefusesWhatIsNotATable) {
  EXPECT_THAT(messageOf(1, 1, {{F(0), B(0), F(1)}}), HasSubstr("action 2: microbatch 1 does not exist"));
  EXPECT_THAT(messageOf(1, 1, {{F(-1), B(0)}}), HasSubstr("action 0: microbatch -1 does not exist"));
  EXPECT_THAT(messageOf(1, 1, {{F(0, 1), B(0)}}), HasSubstr("action 0: chunk 1 does not exist"));
  EXPECT_THAT(messageOf(1, 0, {{}}), HasSubstr("at least 1 rank, 1 stage per rank and 1 microbatch"));
  EXPECT_THAT(messageOf(1, 1, {{}}), HasSubstr("rank 0: F of microbatch 0 on stage 0 is missing"));
  Action alone = B(0), first = F(0);
  alone.overlapsNext = first.overlapsNext = true;
  EXPECT_THAT(messageOf(1, 1, {{F(0), alone}}), HasSubstr("action 1: overlaps the next action, which is not there"));
  EXPECT_THAT(messageOf(1, 2, {{first, F(1), B(0), B(1)}}), HasSubstr("only a forward and a backward"));
  EXPECT_THAT(messageOf(1, 1, {{first, B(0)}}),
              HasSubstr("waits for F0 of stage 0, which is action 0 of the same rank"));
  Schedule schedule{Placement::roundRobin(2, 1), 1, {{F(0), B(0)}}};
  EXPECT_THAT(std::string(validateSchedule(schedule).message()), HasSubstr("has 1 ranks, its placement 2"));
}

TEST(Validator, AcceptsEveryPublishedSchedule) {
  RandomSizes random(1);
  for (int i = 0; i < 1000; ++i) {
    Schedule schedule = randomSchedule(random);
    EXPECT_EQ(validateSchedule(schedule), absl::OkStatus());
    EXPECT_TRUE(runsByHand(schedule));
  }
}

TEST(Validator, RefusesDependentActionsSwapped) {
  RandomSizes random(2);
  int refused = 0;
  while (refused < 1000) {
    Schedule schedule = randomSchedule(random);
    std::vector<Action> &actions = schedule.ranks[random.integer(0, static_cast<int>(schedule.ranks.size()) - 1)];
    size_t position = random.integer(0, static_cast<int>(actions.size()) - 1);
    std::optional<size_t> dependent = findDependent(actions, position);
    if (!dependent)
      continue;
    swapActions(actions, position, *dependent);
    ASSERT_FALSE(validateSchedule(schedule).ok());
    ++refused;
  }
}

TEST(Validator, RefusesActionsDroppedDoubledOrChanged) {
  RandomSizes random(3);
  for (int i = 0; i < 1500; ++i) {
    Schedule schedule = randomSchedule(random);
    std::vector<Action> &actions = schedule.ranks[random.integer(0, static_cast<int>(schedule.ranks.size()) - 1)];
    auto victim = actions.begin() + random.integer(0, static_cast<int>(actions.size()) - 1);
    if (i % 3 == 0)
      actions.erase(victim);
    else if (i % 3 == 1)
      actions.insert(victim, *victim);
    else if (schedule.numMicrobatches > 1)
      victim->microbatch =
          (victim->microbatch + random.integer(1, schedule.numMicrobatches - 1)) % schedule.numMicrobatches;
    else
      victim->kind = victim->kind == ActionKind::Forward ? ActionKind::Backward : ActionKind::Forward;
    EXPECT_FALSE(validateSchedule(schedule).ok());
  }
}

// Any two actions of a rank swapped, a few times: the validator refuses exactly the schedules that do not run.
TEST(Validator, AgreesWithRunsByHand) {
  RandomSizes random(4);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    Schedule schedule = randomSchedule(random);
    for (std::vector<Action> &actions : schedule.ranks)
      for (Action &action : actions)
        action.overlapsNext = action.overlapsNext && i % 2;
    for (int swaps = random.integer(1, 3); swaps > 0; --swaps) {
      std::vector<Action> &actions = schedule.ranks[random.integer(0, static_cast<int>(schedule.ranks.size()) - 1)];
      int one = random.integer(0, static_cast<int>(actions.size()) - 1);
      int other = std::min<int>(one + random.integer(1, 3), static_cast<int>(actions.size()) - 1);
      auto isInBlock = [&](int at) { return actions[at].overlapsNext || (at > 0 && actions[at - 1].overlapsNext); };
      if (!isInBlock(one) && !isInBlock(other))
        std::swap(actions[one], actions[other]);
    }
    bool isValid = validateSchedule(schedule).ok();
    EXPECT_EQ(isValid, runsByHand(schedule));
    ++(isValid ? accepted : refused);
  }
  EXPECT_GE(accepted, 300);
  EXPECT_GE(refused, 300);
}

TEST(ValidatorWithoutStreams, SchedulesOfOneChunkRunOthersHang) {
  for (int ranks = 1; ranks <= 6; ++ranks)
    for (int microbatches = 1; microbatches <= 14; ++microbatches)
      for (const char *name : {"gpipe", "1f1b", "zb_h1"})
        EXPECT_EQ(validateWithoutStreams(makeSchedule(choose(name), ranks, microbatches).value()), absl::OkStatus());
  // Round a loop of two ranks all sends wait for receives that come later.
  absl::Status status = validateWithoutStreams(makeSchedule(choose("breadth_first:2"), 2, 4).value());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "without streams rank 0 waits forever: after action 2 it sends the result of F2 of stage 0, "
            "which rank 1 receives before its action 2, but that rank is at action 1");
}

TEST(ValidatorWithoutStreams, ReceivesThatComeTooLateHang) {
  // Rank 1 after its B0 waits until rank 0 receives the gradient. Rank 0 does that before its own B0, but first wants
  // to be rid of F2, which rank 1 takes after B1.
  Schedule late{Placement::roundRobin(2, 1),
                4,
                {{F(0), F(1), F(2), F(3), B(0), B(1), B(2), B(3)}, {F(0), B(0), F(1), B(1), F(2), B(2), F(3), B(3)}}};
  EXPECT_EQ(validateSchedule(late), absl::OkStatus());
  EXPECT_EQ(validateWithoutStreams(late).message(),
            "without streams rank 0 waits forever: after action 2 it sends the result of F2 of stage 0, which rank 1 "
            "receives before its action 4, but that rank is at action 2");
}
