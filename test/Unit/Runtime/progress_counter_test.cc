#include "runtime/base/progress_counter.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace bowline {
namespace {

// A wake-up that is lost once hangs here.
TEST(ProgressCounter, TwoThreadsTakeTurns) {
  constexpr uint64_t kTurns = 200000;
  ProgressCounter ping, pong;
  uint64_t value = 0;  // not atomic: the counters order it
  std::thread other([&] {
    for (uint64_t i = 1; i <= kTurns; ++i) {
      ping.WaitFor(i);
      ++value;
      pong.Advance();
    }
  });
  for (uint64_t i = 1; i <= kTurns; ++i) {
    ++value;
    ping.Advance();
    pong.WaitFor(i);
    ASSERT_EQ(value, 2 * i);
  }
  other.join();
}

TEST(ProgressCounter, WaitersForDifferentCountsAllWake) {
  for (int round = 0; round < 200; ++round) {
    ProgressCounter counter;
    std::vector<std::thread> waiters;
    for (uint64_t target : {3, 1, 7, 5, 0, 7}) {
      waiters.emplace_back([&counter, target] {
        counter.WaitFor(target);
        EXPECT_GE(counter.value(), target);
      });
    }
    for (int i = 0; i < 7; ++i) {
      if (i % 3 == round % 3) std::this_thread::sleep_for(std::chrono::microseconds(50));
      counter.Advance();
    }
    for (std::thread& waiter : waiters) waiter.join();
  }
}

}  // namespace
}  // namespace bowline
