#include "kernels/cpu/parallel/idle_watch.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "kernels/cpu/parallel/clock.h"

namespace bowline::kernels {
namespace {

// Whether a processor is idle meanwhile is not the test's to say.
TEST(IdleWatch, SaysWhenItLooked) {
  const int64_t begin = Now();
  std::vector<std::thread> askers;
  for (int i = 0; i < 4; ++i) {
    askers.emplace_back([begin] {
      int64_t last = 0;
      while (Now() < begin + 20 * IdleWatch::kBetweenLooks) {
        const IdleWatch::Idle idle = IdleWatch::OfProcess().Ask(CoarseNow());
        if (idle.since > idle.until) continue;
        ASSERT_LE(idle.until, Now());
        ASSERT_GE(idle.until, last) << "looks go back";
        last = idle.until;
      }
    });
  }
  for (std::thread& asker : askers) asker.join();
}

}  // namespace
}  // namespace bowline::kernels
