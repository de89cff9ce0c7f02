#include "kernels/cpu/parallel/loop_times.h"

#include <gtest/gtest.h>

namespace bowline::kernels {
namespace {

// Runs that the caller was asked to do alone.
int Alone(LoopTimes& times, int runs, int64_t extent, int members = 2) {
  int alone = 0;
  for (int i = 0; i < runs; ++i) alone += times.RunsAlone(extent, members);
  return alone;
}

TEST(LoopTimes, TheFirstRunIsTheTeams) {
  LoopTimes times;
  EXPECT_EQ(Alone(times, 5000, 100), 0);
}

TEST(LoopTimes, AFewRunsOfManyAreSamples) {
  LoopTimes times;
  times.RanOnTeam(100, 30'000);
  EXPECT_TRUE(times.RunsAlone(100, 2));
  EXPECT_TRUE(times.RunsAlone(100, 2));
  EXPECT_EQ(Alone(times, LoopTimes::kRuns - LoopTimes::kSamples, 100), 0);
  EXPECT_EQ(Alone(times, 5 * LoopTimes::kRuns, 100), 5 * LoopTimes::kSamples);
}

TEST(LoopTimes, NoneOfALongLoop) {
  LoopTimes times;
  times.RanOnTeam(100, 50'000);
  EXPECT_GT(Alone(times, 5000, 100, 4), 0);
  EXPECT_EQ(Alone(times, 5000, 100, 5), 0) << "five members, 50 us each";
  times.RanAlone(100, 40'000);
  EXPECT_GT(Alone(times, 5000, 100, 5), 0) << "the caller was seen to take less";
  EXPECT_EQ(Alone(times, 5000, 501, 5), 0) << "an extent for which it takes longer";
}

TEST(LoopTimes, TheCallerWorksAloneWhereATeamClearlyTakesLonger) {
  LoopTimes times;
  times.RanOnTeam(100, 30'000);
  times.RanAlone(100, 28'000);
  EXPECT_EQ(Alone(times, LoopTimes::kRuns, 100), LoopTimes::kSamples) << "7 % may be chance";
  times.RanAlone(100, 26'000);
  EXPECT_EQ(Alone(times, LoopTimes::kRuns, 100), LoopTimes::kRuns - LoopTimes::kSamples);
  times.RanOnTeam(100, 16'000);  // a sample, after the machine moved the processors together
  EXPECT_EQ(Alone(times, LoopTimes::kRuns, 100), LoopTimes::kSamples);
}

TEST(LoopTimes, InterruptionsChangeLittle) {
  LoopTimes times;
  times.RanOnTeam(100, 16'000);
  times.RanAlone(100, 30'000);
  for (int i = 0; i < 9; ++i) times.RanOnTeam(100, 5'000'000);  // each adds a sixteenth
  EXPECT_EQ(Alone(times, LoopTimes::kRuns, 100), LoopTimes::kSamples);
  for (int i = 0; i < 6; ++i) times.RanOnTeam(100, 5'000'000);
  EXPECT_EQ(Alone(times, LoopTimes::kRuns, 100), LoopTimes::kRuns - LoopTimes::kSamples);
}

}  // namespace
}  // namespace bowline::kernels
