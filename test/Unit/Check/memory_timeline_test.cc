#include <gtest/gtest.h>

#include "checker/MemoryTimeline.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

TEST(MemoryTimeline, CountsWhatIsNeededLater) {
  fbs::PlanT plan = testing::MakePlan();
  const auto bytes = testing::BytesOf(plan);
  const Timeline timeline(testing::PlanIn(bytes));
  const MemoryTimeline memory = computeMemoryTimeline(timeline, 1);
  const uint64_t always = 2048 + 4 + 512 + 2 * 20 + 160;
  EXPECT_EQ(memory.persistentBytes, always);
  const uint64_t rows = 320, tensor = 160, scratch = 65536;
  // zero; per slot: gather, matmul, product + product, doubled + sum; then copy, increment.
  const std::vector<uint64_t> expected = {always + tensor,
                                          always + tensor + rows,
                                          always + 2 * tensor + rows + scratch,
                                          always + 3 * tensor,
                                          always + 2 * tensor,
                                          always + tensor + rows,
                                          always + 2 * tensor + rows + scratch,
                                          always + 3 * tensor,
                                          always + 2 * tensor,
                                          always + tensor,
                                          always};
  EXPECT_EQ(memory.liveBytes, expected);
  EXPECT_EQ(memory.peakCommand, 2u);
  EXPECT_EQ(memory.peakSite.call, 1u);
  EXPECT_EQ(memory.peakSite.command, 1u);
  ASSERT_EQ(memory.atPeak.size(), 4u);
  EXPECT_EQ(memory.atPeak[0].buffer, testing::kWorkspace);
  EXPECT_EQ(memory.atPeak[1].buffer, testing::kRows);
}

TEST(MemoryTimeline, CountsAResultInPlaceOnce) {
  fbs::PlanT plan = testing::MakePlan();
  const auto apart = testing::BytesOf(plan);
  plan.buffers[testing::kDoubled]->offset = plan.buffers[testing::kProduct]->offset;
  const auto in_place = testing::BytesOf(plan);
  const MemoryTimeline before = computeMemoryTimeline(Timeline(testing::PlanIn(apart)), 1);
  const MemoryTimeline after = computeMemoryTimeline(Timeline(testing::PlanIn(in_place)), 1);
  for (size_t i = 0; i < before.liveBytes.size(); ++i) {
    const bool adds = i == 3 || i == 7;  // product + product
    EXPECT_EQ(after.liveBytes[i], before.liveBytes[i] - (adds ? 160 : 0)) << i;
  }
}

TEST(MemoryTimeline, Plots) {
  MemoryTimeline memory;
  memory.liveBytes = {1 << 20, 4 << 20, 2 << 20};
  memory.peakCommand = 1;
  EXPECT_EQ(plotMemory(memory, 64, 2),
            "      4.00 MiB | #\n"
            "      2.00 MiB |.##\n"
            "               +---\n"
            "                3 commands\n");
  EXPECT_EQ(plotMemory(MemoryTimeline(), 64, 2), "");
}

}  // namespace
}  // namespace bowline
