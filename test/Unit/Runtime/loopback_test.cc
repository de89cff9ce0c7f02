#include <gtest/gtest.h>

#include <vector>

#include "runtime/comm/loopback/loopback_communicator.h"
#include "runtime/drivers/cpu/cpu_device.h"

namespace bowline {
namespace {

TEST(Loopback, CollectivesOverOneRankAreTheIdentity) {
  const auto communicator = CreateLoopbackCommunicator(1);
  ASSERT_TRUE(communicator.ok());
  EXPECT_EQ((*communicator)->rank(), 0);
  EXPECT_EQ((*communicator)->size(), 1);
  const auto device = CreateCpuDevice({.threads = 1});
  const auto stream = (*device)->CreateStream();
  const std::vector<float> send = {1, -2, 3};
  const auto f32 = kernels::DType::kF32;
  std::vector<float> reduced(4, 9), gathered(4, 9), scattered(4, 9);
  EXPECT_TRUE((*communicator)->AllReduce(**stream, send.data(), reduced.data(), 3, f32, hal::ReduceOp::kMax).ok());
  EXPECT_TRUE((*communicator)->AllGather(**stream, send.data(), gathered.data(), 3, f32).ok());
  EXPECT_TRUE(
      (*communicator)->ReduceScatter(**stream, send.data(), scattered.data(), 3, f32, hal::ReduceOp::kSum).ok());
  const std::vector<float> expected = {1, -2, 3, 9};
  EXPECT_EQ(reduced, expected);
  EXPECT_EQ(gathered, expected);
  EXPECT_EQ(scattered, expected);
  EXPECT_TRUE((*communicator)->AllReduce(**stream, reduced.data(), reduced.data(), 4, f32, hal::ReduceOp::kSum).ok());
  EXPECT_EQ(reduced, expected);
  EXPECT_TRUE((*communicator)->Barrier().ok());
}

TEST(Loopback, RefusesSizesThatItDoesNotHave) {
  EXPECT_EQ(CreateLoopbackCommunicator(0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CreateLoopbackCommunicator(2).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace bowline
