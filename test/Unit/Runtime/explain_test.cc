// Messages that tell ranks which rank waits for which other rank.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/comm/control/activity.h"
#include "runtime/hal/operation.h"
#include "test/Support/test_seed.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Health = RankState::Health;

Activity Barrier(const std::vector<int>& ranks, uint64_t collectives) {
  hal::Operation operation;
  operation.kind = hal::OperationKind::kBarrier;
  operation.number = static_cast<uint32_t>(collectives - 1);
  Activity activity;
  activity.communicator = "all";
  activity.ranks = ranks;
  activity.operation = operation.Pack();
  activity.collectives = collectives;
  return activity;
}

Activity Idle(const std::vector<int>& ranks, uint64_t collectives) {
  Activity activity = Barrier(ranks, collectives);
  activity.operation = 0;
  return activity;
}

Activity Receive(const std::vector<int>& ranks, int from) {
  hal::Operation operation;
  operation.kind = hal::OperationKind::kReceive;
  operation.peer = from;
  Activity activity;
  activity.communicator = "pair";
  activity.ranks = ranks;
  activity.operation = operation.Pack();
  activity.total = 6;
  activity.waits_for = {ranks[static_cast<size_t>(from)]};
  return activity;
}

RankState State(Health health, std::vector<Activity> activities) {
  RankState state;
  state.health = health;
  state.where = "host h, pid 1";
  state.activities = std::move(activities);
  return state;
}

Complaint Late(int rank, const Activity& activity) {
  Complaint complaint;
  complaint.rank = rank;
  complaint.waited_seconds = 5;
  complaint.activity = activity;
  return complaint;
}

const std::vector<int> kThree = {0, 1, 2};

TEST(Explain, NamesTheDeadBeforeAllElse) {
  std::vector<RankState> states = {State(Health::kAlive, {Barrier(kThree, 2)}), State(Health::kDead, {}),
                                   State(Health::kSilent, {Idle(kThree, 1)})};
  const absl::Status status = Explain(Late(0, Barrier(kThree, 2)), states);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "rank 0 waits for ranks 1, 2 in barrier (operation 1 of communicator 'all'); cause: rank 1 (host h, pid 1) "
            "died: its connection closed without a farewell, so it crashed or was killed; its own output says more");
}

TEST(Explain, NamesTheSilent) {
  std::vector<RankState> states = {State(Health::kAlive, {Barrier(kThree, 2)}),
                                   State(Health::kAlive, {Idle(kThree, 1)}), State(Health::kSilent, {Idle(kThree, 1)})};
  states[2].silent_seconds = 1.234;
  EXPECT_EQ(Explain({}, states).message(),
            "rank 0 waits for ranks 1, 2 in barrier (operation 1 of communicator 'all'); cause: rank 2 (host h, pid 1) "
            "did not answer for 1.2 s: stopped, or its machine hangs, or the network to it is cut");
}

TEST(Explain, NamesAConnectionBetweenTheLiving) {
  std::vector<RankState> states = {State(Health::kAlive, {Receive({0, 2}, 1)}), State(Health::kAlive, {}),
                                   State(Health::kAlive, {})};
  Complaint complaint;
  complaint.rank = 0;
  complaint.unreachable = 2;
  complaint.failure = "reset";
  const std::string text(Explain(complaint, states).message());
  EXPECT_THAT(text, HasSubstr("rank 0 waits for rank 2 in receive of 6 f32 from rank 2 (operation 0 of communicator "
                              "'pair'); cause: the connection from rank 0 (host h, pid 1) to rank 2 (host h, pid 1) "
                              "failed (reset) although both are alive"));
  states[2].health = Health::kLeft;
  EXPECT_THAT(std::string(Explain(complaint, states).message()),
              HasSubstr("cause: rank 2 (host h, pid 1) left the group"));
}

TEST(Explain, FollowsTheChain) {
  const std::vector<RankState> states = {State(Health::kAlive, {Barrier(kThree, 2)}),
                                         State(Health::kAlive, {Idle(kThree, 1), Receive({1, 2}, 1)}),
                                         State(Health::kAlive, {Idle(kThree, 2)})};
  const absl::Status status = Explain(Late(0, Barrier(kThree, 2)), states);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(
      status.message(),
      "rank 0 waited 5 s for rank 1 in barrier (operation 1 of communicator 'all'); rank 1 waits for rank 2 in "
      "receive of 6 f32 from rank 2 (operation 0 of communicator 'pair'); rank 2 is in no operation; cause: rank 2 "
      "(host h, pid 1), alive but not there; look at its log and its stack, or raise the timeout if it needs longer");
}

TEST(Explain, SeesCycles) {
  const std::vector<RankState> states = {State(Health::kAlive, {Receive({0, 1}, 1)}),
                                         State(Health::kAlive, {Receive({0, 1}, 0)})};
  EXPECT_THAT(std::string(Explain(Late(1, Receive({0, 1}, 0)), states).message()),
              HasSubstr("; cause: ranks 0, 1 wait for each other"));
}

TEST(Explain, WhoLeftIsTheCauseWhoeverComplains) {
  Activity leaving;
  leaving.leaving = true;
  leaving.waits_for = {0, 2};
  const std::vector<RankState> states = {State(Health::kAlive, {Barrier(kThree, 2)}), State(Health::kLeft, {}),
                                         State(Health::kAlive, {Barrier(kThree, 2)})};
  for (const Complaint& complaint : {Late(1, leaving), Late(0, Barrier(kThree, 2))}) {
    EXPECT_THAT(std::string(Explain(complaint, states).message()),
                HasSubstr("; cause: rank 1 (host h, pid 1) left the group before the others were done"));
  }
}

TEST(Explain, IsShortForManyRanks) {
  constexpr int kRanks = 3000;
  std::vector<int> all(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) all[static_cast<size_t>(rank)] = rank;
  std::vector<RankState> states;
  for (int rank = 0; rank < kRanks; ++rank) {
    // Many are missing, and many wait.
    states.push_back(State(Health::kAlive, {rank % 2 == 0 ? Barrier(all, 2) : Idle(all, 1)}));
  }
  const std::string late(Explain(Late(0, Barrier(all, 2)), states).message());
  EXPECT_THAT(late, HasSubstr("rank 0 waited 5 s for ranks 1, 3, 5, 7, 9, 11, 13, 15 and 1492 more in barrier"));
  EXPECT_LT(late.size(), 1500u);
  states[1].health = Health::kDead;
  const std::string dead(Explain({}, states).message());
  EXPECT_THAT(dead, HasSubstr("and 1496 more wait; cause: rank 1 (host h, pid 1) died"));
  EXPECT_LT(dead.size(), 1500u);
}

TEST(Explain, BearsNonsense) {
  std::mt19937_64 random(TestSeed());
  std::vector<Activity> activities(2);
  activities[0] = Barrier(kThree, 1);
  activities[1] = Receive({1, 2}, 0);
  WireWriter writer;
  Write(writer, activities);
  for (size_t size = 0; size < writer.bytes().size(); ++size) {
    WireReader reader(absl::string_view(writer.bytes()).substr(0, size));
    EXPECT_TRUE(ReadActivities(reader).empty());
    EXPECT_FALSE(reader.complete());
  }
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = writer.bytes();
    for (uint64_t change = random() % 4 + 1; change > 0; --change) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    WireReader reader(bytes);
    std::vector<RankState> states(3);
    states[1].activities = ReadActivities(reader);
    EXPECT_FALSE(Explain(Late(0, states[1].activities.empty() ? Activity() : states[1].activities[0]), states).ok());
    WireReader again(bytes);
    ReadComplaint(again);
    EXPECT_FALSE(WireReader(bytes).Status().ok());
  }
}

TEST(Wire, GivesBackWhatWasWritten) {
  std::vector<Activity> activities = {Barrier(kThree, 5), Receive({1, 2}, 0)};
  activities[1].creating = true;
  WireWriter writer;
  Write(writer, activities);
  Write(writer, Late(0, activities[1]));
  WireReader reader(writer.Status(absl::DataLossError("x")).bytes());
  const std::vector<Activity> read = ReadActivities(reader);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].ranks, kThree);
  EXPECT_EQ(read[0].operation, activities[0].operation);
  EXPECT_EQ(read[0].collectives, 5u);
  EXPECT_EQ(read[1].waits_for, std::vector<int>{1});
  EXPECT_TRUE(read[1].creating);
  const Complaint complaint = ReadComplaint(reader);
  EXPECT_EQ(complaint.waited_seconds, 5);
  EXPECT_EQ(complaint.activity.communicator, "pair");
  EXPECT_EQ(reader.Status(), absl::DataLossError("x"));
  EXPECT_TRUE(reader.complete());
}

}  // namespace
}  // namespace bowline
