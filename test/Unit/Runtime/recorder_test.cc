// Which commands a session may record as a whole.

#include "runtime/executor/recorder.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "test/Support/test_seed.h"

namespace bowline {
namespace {

constexpr auto kSignal = fbs::CommandBody::Signal, kWait = fbs::CommandBody::Wait,
               kCollective = fbs::CommandBody::Collective, kLaunch = fbs::CommandBody::Launch;

struct Command {
  fbs::CommandBody kind;
  uint16_t stream;
  size_t event = 0;
};

// The commands, called so many times.
bool Follow(const std::vector<Command>& commands, uint32_t calls = 1) {
  static char events[8];  // only their addresses count
  BoundPlan bound;
  for (const Command& command : commands) {
    BoundCommand result;
    result.kind = command.kind;
    result.stream = command.stream;
    if (command.kind == kSignal || command.kind == kWait) {
      result.event = reinterpret_cast<hal::Event*>(&events[command.event]);
    }
    bound.commands.push_back(result);
  }
  const std::vector<BoundCall> all(calls, {0, static_cast<uint32_t>(commands.size())});
  return CommunicationsFollowOneAnother(bound, all);
}

TEST(Recorder, KnowsCommunicationsThatFollowOneAnother) {
  EXPECT_TRUE(Follow({{kLaunch, 0}, {kLaunch, 1}}));
  EXPECT_TRUE(Follow({{kCollective, 1}, {kCollective, 1}}));
  EXPECT_FALSE(Follow({{kCollective, 1}, {kCollective, 2}}));
  EXPECT_TRUE(Follow({{kCollective, 1}, {kSignal, 1}, {kWait, 2}, {kCollective, 2}}));
  EXPECT_FALSE(Follow({{kSignal, 1}, {kCollective, 1}, {kWait, 2}, {kCollective, 2}}));
  EXPECT_FALSE(Follow({{kCollective, 1}, {kSignal, 1}, {kWait, 0}, {kCollective, 2}}));
  // Through a third stream.
  EXPECT_TRUE(Follow({{kCollective, 1}, {kSignal, 1}, {kWait, 0}, {kSignal, 0, 1}, {kWait, 2, 1}, {kCollective, 2}}));
  // The last of three is ordered with the first alone.
  EXPECT_FALSE(Follow({{kCollective, 1}, {kSignal, 1}, {kCollective, 1}, {kWait, 2}, {kCollective, 2}}));
  // A call after another.
  const std::vector<Command> loop = {{kCollective, 1}, {kSignal, 1}, {kWait, 2}, {kCollective, 2}};
  EXPECT_FALSE(Follow(loop, 2));
  std::vector<Command> ordered = {{kWait, 1, 1}};
  ordered.insert(ordered.end(), loop.begin(), loop.end());
  ordered.push_back({kSignal, 2, 1});
  EXPECT_TRUE(Follow(ordered, 3));
}

// Against the definition, by the edges between all commands.
TEST(Recorder, AgreesWithTheDefinition) {
  std::mt19937 random(TestSeed());
  int follow = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Command> commands;
    for (uint32_t i = 0; i < 4 + random() % 8; ++i) {
      const fbs::CommandBody kinds[] = {kSignal, kWait, kCollective};
      commands.push_back({kinds[random() % 3], static_cast<uint16_t>(random() % 3), random() % 2});
    }
    const size_t n = commands.size();
    std::vector<std::vector<bool>> before(n, std::vector<bool>(n));  // [earlier][later]
    for (size_t later = 0; later < n; ++later) {
      size_t signal = n;
      for (size_t earlier = 0; earlier < later; ++earlier) {
        if (commands[earlier].stream == commands[later].stream) before[earlier][later] = true;
        if (commands[earlier].kind == kSignal && commands[earlier].event == commands[later].event) signal = earlier;
      }
      if (commands[later].kind == kWait && signal < n) before[signal][later] = true;
    }
    for (size_t k = 0; k < n; ++k) {
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n; ++j) before[i][j] = before[i][j] || (before[i][k] && before[k][j]);
      }
    }
    bool all = true;
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = i + 1; j < n; ++j) {
        if (commands[i].kind == kCollective && commands[j].kind == kCollective) all = all && before[i][j];
      }
    }
    ASSERT_EQ(Follow(commands), all) << "round " << round;
    follow += all;
  }
  EXPECT_GT(follow, 300);
  EXPECT_LT(follow, 2700);
}

}  // namespace
}  // namespace bowline
