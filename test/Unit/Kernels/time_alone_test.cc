#include "kernels/cpu/parallel/time_alone.h"

#include <gtest/gtest.h>

namespace bowline::kernels {
namespace {

// Runs of which the caller was asked to make samples.
int Samples(TimeAlone& time, int runs, int64_t extent) {
  int samples = 0;
  for (int i = 0; i < runs; ++i) samples += time.TakesSample(extent);
  return samples;
}

TEST(TimeAlone, WhatMembersWorkedUntilASampleSaysLess) {
  TimeAlone time;
  EXPECT_EQ(time.Estimate(100, 30'000), 30'000);
  EXPECT_EQ(time.Estimate(200, 60'000), 60'000);
  time.Sample(100, 20'000);
  EXPECT_EQ(time.Estimate(100, 30'000), 20'000);
  EXPECT_EQ(time.Estimate(200, 60'000), 40'000);
  EXPECT_EQ(time.Estimate(200, 10'000), 10'000);
}

TEST(TimeAlone, FollowsLongerSamplesSlowly) {
  TimeAlone time;
  time.Estimate(100, 30'000);
  time.Sample(100, 16'000);
  time.Sample(100, 5'000'000);  // was interrupted
  EXPECT_EQ(time.Estimate(100, 30'000), 17'000);
  for (int i = 0; i < 200; ++i) time.Sample(100, 24'000);
  EXPECT_NEAR(static_cast<double>(time.Estimate(100, 30'000)), 24'000, 10);
}

TEST(TimeAlone, AFewRunsOfManyAreSamples) {
  TimeAlone time;
  EXPECT_EQ(Samples(time, 5000, 100), 0) << "a loop that may be long";
  time.Estimate(100, 30'000);
  EXPECT_TRUE(time.TakesSample(100));
  EXPECT_TRUE(time.TakesSample(100));
  EXPECT_EQ(Samples(time, TimeAlone::kRuns - TimeAlone::kSamples, 100), 0);
  EXPECT_EQ(Samples(time, 5 * TimeAlone::kRuns, 100), 5 * TimeAlone::kSamples);
}

TEST(TimeAlone, NoneOfALongLoop) {
  TimeAlone time;
  time.Estimate(100, TimeAlone::kShort);
  EXPECT_EQ(Samples(time, 5000, 101), 0);
  EXPECT_GT(Samples(time, 5000, 100), 0);
}

}  // namespace
}  // namespace bowline::kernels
