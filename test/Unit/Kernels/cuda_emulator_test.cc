// Errors that the emulator finds: functions that are wrong in ways that a GPU shows seldom, or as a crash.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/device.h"
#include "kernels/cuda/emulator/emulator.h"

using namespace bowline::device;

// Each thread passes its number to the next one, with or without a barrier between.
BOWLINE_DEVICE_FUNCTION(test_pass_on, 128, int32_t* out, int32_t barrier) {
  auto* shared = reinterpret_cast<int32_t*>(SharedMemory());
  const uint32_t i = threadIdx.x;
  shared[i] = static_cast<int32_t>(i);
  if (barrier != 0) Barrier();
  out[blockIdx.x * blockDim.x + i] = shared[(i + 1) % blockDim.x];
}
BOWLINE_DEVICE_FUNCTION(test_sums, 64, float* out) {
  out[threadIdx.x] = WarpSum(static_cast<float>(threadIdx.x)) + ShuffleFrom(static_cast<float>(threadIdx.x), 5);
}
BOWLINE_DEVICE_FUNCTION(test_misaligned, 32, float* out) { StoreAligned(out + 1, Vector<float, 4>{}); }
BOWLINE_DEVICE_FUNCTION(test_beyond_shared, 32, float* out) { SharedMemory()[threadIdx.x == 0 ? 64 : 0] = 1; }
BOWLINE_DEVICE_FUNCTION(test_waits_for_ever, 32, float* out) {
  if (threadIdx.x == 3) return;
  WarpBarrier();
}
BOWLINE_DEVICE_FUNCTION(test_threads_end, 64, float* out) {
  if (threadIdx.x >= 32) return;
  Barrier();
  out[threadIdx.x] = 1.0f;
}

namespace bowline::emulator {
namespace {

using kernels::cuda::DeviceLaunch;
using kernels::cuda::Parameter;

template <typename T>
absl::Status RunOn(const DeviceLaunch& launch, std::vector<T>& out, uint64_t seed = 1) {
  void* const arguments[] = {out.data()};
  return Launch(launch, arguments, nullptr, seed);
}

TEST(CudaEmulator, BarriersOrderThreads) {
  std::vector<int32_t> out(3 * 96, -7);
  const std::vector<Parameter> parameters = {Parameter::Argument(0), Parameter::I32(1)};
  ASSERT_TRUE(RunOn({"test_pass_on", {3, 1, 1}, {96, 1, 1}, 96 * 4, parameters}, out).ok());
  for (int i = 0; i < 3 * 96; ++i) EXPECT_EQ(out[i], (i % 96 + 1) % 96);
}

TEST(CudaEmulator, AMissingBarrierShows) {
  std::vector<int32_t> out(96, -7);
  const std::vector<Parameter> parameters = {Parameter::Argument(0), Parameter::I32(0)};
  ASSERT_TRUE(RunOn({"test_pass_on", {1, 1, 1}, {96, 1, 1}, 96 * 4, parameters}, out).ok());
  EXPECT_THAT(out, ::testing::Contains(-1));  // the fill of shared memory
}

TEST(CudaEmulator, LanesExchange) {
  std::vector<float> out(64);
  ASSERT_TRUE(RunOn({"test_sums", {1, 1, 1}, {64, 1, 1}, 0, {Parameter::Argument(0)}}, out).ok());
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], i < 32 ? 496 + 5 : 496 + 32 * 32 + 37);
}

TEST(CudaEmulator, ThreadsThatEndAreNotWaitedFor) {
  std::vector<float> out(64);
  ASSERT_TRUE(RunOn({"test_threads_end", {1, 1, 1}, {64, 1, 1}, 0, {Parameter::Argument(0)}}, out).ok());
  EXPECT_EQ(out[31], 1.0f);
}

TEST(CudaEmulatorDeathTest, WhatAGpuWouldNotDo) {
  alignas(16) static float memory[8];
  void* const arguments[] = {memory};
  const auto run = [&](const char* function) {
    (void)Launch({function, {1, 1, 1}, {32, 1, 1}, 64, {Parameter::Argument(0)}}, arguments, nullptr, 1);
  };
  EXPECT_DEATH(run("test_misaligned"), "an access is not aligned, in 'test_misaligned'");
  EXPECT_DEATH(run("test_beyond_shared"), "a write beyond shared memory");
  EXPECT_DEATH(run("test_waits_for_ever"), "threads wait for others that do not come");
}

TEST(CudaEmulator, RefusesLaunchesThatDoNotFit) {
  std::vector<float> out(64);
  const auto message = [&](const DeviceLaunch& launch) { return std::string(RunOn(launch, out).message()); };
  using ::testing::HasSubstr;
  const std::vector<Parameter> one = {Parameter::Argument(0)};
  EXPECT_THAT(message({"test_nothing", {1, 1, 1}, {32, 1, 1}, 0, one}), HasSubstr("no such function"));
  EXPECT_THAT(message({"test_sums", {1, 1, 1}, {96, 1, 1}, 0, one}),
              HasSubstr("more threads than its function allows"));
  EXPECT_THAT(message({"test_sums", {1, 65536, 1}, {64, 1, 1}, 0, one}), HasSubstr("the grid is too large"));
  EXPECT_THAT(message({"test_sums", {1, 1, 1}, {0, 1, 1}, 0, one}), HasSubstr("an empty grid"));
  EXPECT_THAT(message({"test_sums", {1, 1, 1}, {64, 1, 1}, 0, {}}), HasSubstr("0 parameters; it takes 1"));
  EXPECT_THAT(message({"test_sums", {1, 1, 1}, {64, 1, 1}, 0, {Parameter::I32(4)}}), HasSubstr("of another type"));
  EXPECT_THAT(message({"test_sums", {1, 1, 1}, {64, 1, 1}, 0, {Parameter::Argument(1)}}),
              HasSubstr("an argument that there is not"));
  EXPECT_THAT(message({"test_pass_on", {1, 1, 1}, {64, 1, 1}, 0, {Parameter::Argument(0), Parameter::I64(1)}}),
              HasSubstr("parameter 1 is of another type"));
}

}  // namespace
}  // namespace bowline::emulator
