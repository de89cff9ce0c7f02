// On devices that replay recorded commands, communications follow one another by streams and events.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "checker/PlanChecker.h"
#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using fbs::BufferKind;
using fbs::CollectiveKind;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::RankPlan;

absl::Status Check(fbs::PlanT plan) {
  const auto bytes = testing::BytesOf(plan);
  return PlanChecker(testing::PlanIn(bytes)).check();
}

// Where the device replays recorded commands, the order of issue is no order between communicators; elsewhere it keeps
// ranks from waiting for each other. A chain of events through a third stream is one.
TEST(SerialOrder, EventsAndStreamsMakeIt) {
  enum class Order { kNone, kEvent, kThroughOther, kOneStream };
  for (const Order order : {Order::kNone, Order::kEvent, Order::kThroughOther, Order::kOneStream}) {
    for (const char* device : {"cuda", "discrete", "cpu", "a device of another build"}) {
      SCOPED_TRACE(device);
      RankPlan plan({{"dp", 2}}, -1);
      plan.Streams({"compute", "a", "b"});
      plan.Events(2);
      const uint32_t first = plan.Communicator("first", {0}), second = plan.Communicator("second", {0});
      const uint32_t x = plan.Buffer(0, "x", BufferKind::Input, 16);
      const uint32_t y = plan.Buffer(0, "y", BufferKind::Output, 16), z = plan.Buffer(0, "z", BufferKind::Output, 16);
      plan.Collective(0, 1, CollectiveKind::AllReduce, first, x, y, 16);
      if (order == Order::kEvent || order == Order::kThroughOther) plan.Signal(0, 1, 0);
      if (order == Order::kThroughOther) {
        plan.Wait(0, 0, 0);
        plan.Signal(0, 0, 1);
      }
      if (order == Order::kEvent) plan.Wait(0, 2, 0);
      if (order == Order::kThroughOther) plan.Wait(0, 2, 1);
      plan.Collective(0, order == Order::kOneStream ? 1 : 2, CollectiveKind::AllReduce, second, x, z, 16);
      fbs::PlanT made = plan.Finish();
      made.target->device = device;
      if (order != Order::kNone || std::string(device) != "cuda") {
        EXPECT_EQ(Check(std::move(made)), absl::OkStatus());
      } else {
        EXPECT_THAT(std::string(Check(std::move(made)).message()),
                    AllOf(HasSubstr("the proof of serial order fails"), HasSubstr("on stream 'a'"),
                          HasSubstr("on stream 'b'; nothing orders the two, and a device that replays")));
      }
    }
  }
}

// In a loop, the first communication of a call follows the last one of the call before.
TEST(SerialOrder, GoesFromCallToCall) {
  for (const bool ordered : {true, false}) {
    RankPlan plan({{"dp", 2}}, -1);
    plan.Streams({"compute", "a", "b"});
    plan.Events(2);
    const uint32_t first = plan.Communicator("first", {0}), second = plan.Communicator("second", {0});
    const uint32_t x = plan.Buffer(0, "x", BufferKind::Input, 16);
    const uint32_t y = plan.Buffer(0, "y", BufferKind::Output, 16), z = plan.Buffer(0, "z", BufferKind::Output, 16);
    const uint32_t begin = plan.Segment(0, "begin");
    plan.Signal(0, 2, 1);
    const uint32_t loop = plan.Segment(0, "loop");
    if (ordered) plan.Wait(0, 1, 1);
    plan.Collective(0, 1, CollectiveKind::AllReduce, first, x, y, 16);
    plan.Signal(0, 1, 0);
    plan.Wait(0, 2, 0);
    plan.Collective(0, 2, CollectiveKind::AllReduce, second, x, z, 16);
    plan.Signal(0, 2, 1);
    plan.Call(0, begin);
    plan.Call(0, loop);
    plan.Call(0, loop);
    fbs::PlanT made = plan.Finish();
    made.target->device = "cuda";
    if (ordered) {
      EXPECT_EQ(Check(std::move(made)), absl::OkStatus());
    } else {
      EXPECT_THAT(std::string(Check(std::move(made)).message()),
                  AllOf(HasSubstr("the proof of serial order fails"), HasSubstr("(call 1, "), HasSubstr("(call 2, ")));
    }
  }
}

}  // namespace
}  // namespace bowline
