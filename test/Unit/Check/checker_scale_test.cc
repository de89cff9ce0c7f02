#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "checker/PlanChecker.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

// A chain of 50000 commands over 10000 buffers that share bytes, run for 8 slots: 400000 commands.
TEST(CheckerScale, HundredsOfThousandsOfCommands) {
  using testing::kAdd;
  fbs::PlanT plan = testing::MakePlan();
  const uint64_t base = (plan.arena_bytes + 63) / 64 * 64;
  constexpr uint32_t kBuffers = 10000, kCommands = 50000, kPlaces = 1000;
  const uint32_t first = static_cast<uint32_t>(plan.buffers.size());
  for (uint32_t i = 0; i < kBuffers; ++i) {
    auto buffer = std::make_unique<fbs::BufferT>(*plan.buffers[testing::kProduct]);
    buffer->name = "chain" + std::to_string(i);
    buffer->offset = base + (i % kPlaces) * 192;
    plan.buffers.push_back(std::move(buffer));
  }
  plan.arena_bytes = base + (kPlaces - 1) * 192 + 160;
  auto segment = std::make_unique<fbs::SegmentT>();
  segment->name = "chain";
  uint32_t previous = testing::kSum;
  for (uint32_t i = 0; i < kCommands; ++i) {
    const uint32_t next = first + i % kBuffers;
    auto command = std::make_unique<fbs::CommandT>(*plan.programs[1]->segments[1]->commands[2]);
    command->body.AsLaunch()->operands = {fbs::Operand(previous, 0), fbs::Operand(previous, 0), fbs::Operand(next, 0)};
    segment->commands.push_back(std::move(command));
    previous = next;
  }
  plan.programs[1]->segments.push_back(std::move(segment));
  auto& timeline = plan.programs[1]->timeline;
  for (int i = 0; i < 8; ++i) timeline.insert(timeline.begin() + 1, fbs::SegmentCall(3, 0));
  const auto bytes = testing::BytesOf(plan);

  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(VerifyPlan(testing::PlanIn(bytes)).ok()) << VerifyPlan(testing::PlanIn(bytes));
  const auto verified = std::chrono::steady_clock::now();
  PlanChecker checker(testing::PlanIn(bytes));
  const absl::Status status = checker.check();
  const auto checked = std::chrono::steady_clock::now();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GT(checker.report().entries[1].launches, 400000u);
  const double verify_seconds = std::chrono::duration<double>(verified - start).count();
  const double check_seconds = std::chrono::duration<double>(checked - verified).count();
  std::printf("verify %.3f s, check %.3f s for %zu bytes\n", verify_seconds, check_seconds, bytes.size());
}

// One command that reads the same bytes 60000 times.
TEST(CheckerScale, TensOfThousandsOfOperands) {
  using testing::kAdd;
  fbs::PlanT plan = testing::MakePlan();
  auto kernel = std::make_unique<fbs::KernelT>(*plan.kernels[kAdd]);
  fbs::LaunchT& launch = testing::LaunchAt(plan, 1, 1, 2);
  launch.kernel = static_cast<uint32_t>(plan.kernels.size());
  kernel->in_place.clear();
  for (int i = 0; i < 60000; ++i) {
    kernel->arguments.insert(kernel->arguments.begin(), std::make_unique<fbs::ArgumentT>(*kernel->arguments.front()));
    launch.operands.insert(launch.operands.begin(), launch.operands.front());
  }
  plan.kernels.push_back(std::move(kernel));
  const auto bytes = testing::BytesOf(plan);
  ASSERT_EQ(VerifyPlan(testing::PlanIn(bytes)), absl::OkStatus());
  EXPECT_EQ(PlanChecker(testing::PlanIn(bytes)).check(), absl::OkStatus());
  launch.operands.back() = launch.operands.front();
  const auto aliased = testing::BytesOf(plan);
  EXPECT_EQ(PlanChecker(testing::PlanIn(aliased)).check().code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace bowline
