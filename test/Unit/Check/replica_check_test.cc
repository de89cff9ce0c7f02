// Copies of a state that a plan keeps on several ranks: proven equal, or refused with the axis and the command.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "checker/PlanChecker.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using fbs::BufferKind;
using fbs::CollectiveKind;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::RankPlan;

constexpr int64_t kElements = 12;

// Ranks dp x tp x cp with a weight that all have, and an input of which dp divides the rows.
struct Step {
  Step() : plan({{"dp", 2}, {"tp", 3}, {"cp", 2}}, -1) {
    plan.Streams({"compute"});
    dp = plan.Communicator("dp", {0});
    tp = plan.Communicator("tp", {1});
    again = plan.Communicator("again", {2});
    weight = plan.Buffer(0, "weight", BufferKind::State, kElements);
    moment = plan.Buffer(0, "moment", BufferKind::State, kElements);
    input = plan.Buffer(0, "input", BufferKind::Input, kElements);
    gradient = plan.Buffer(0, "gradient", BufferKind::Temporary, kElements);
    sum = plan.Buffer(0, "sum", BufferKind::Temporary, kElements);
    updated = plan.Buffer(0, "updated", BufferKind::Temporary, kElements);
  }

  // The gradient of the input, and the weight with `from` added.
  void Gradient() { plan.Add(0, 0, input, weight, gradient); }
  void Update(uint32_t from) {
    plan.Add(0, 0, weight, from, updated);
    plan.Copy(0, 0, updated, weight);
  }

  static void AddState(fbs::PlanT& made, uint32_t buffer) {
    auto state = std::make_unique<fbs::StateT>();
    state->buffer = buffer;
    state->key = made.buffers[buffer]->name;
    state->flags = fbs::StateFlag::Saved;
    state->init = "zeros";
    made.states.push_back(std::move(state));
  }

  // Says that the ranks along an axis of `size` have different rows of a tensor.
  static void Divide(fbs::BufferT& buffer, uint8_t axis, int64_t size) {
    buffer.layout = std::make_unique<fbs::LayoutT>();
    buffer.layout->global_shape = {kElements * size};
    buffer.layout->dim_shardings.push_back(std::make_unique<fbs::DimShardingT>());
    buffer.layout->dim_shardings.back()->axes = {axis};
  }

  absl::Status Check(const std::function<void(fbs::PlanT&)>& change = {}) {
    fbs::PlanT made = plan.Finish();
    Divide(*made.buffers[input], 0, 2);
    AddState(made, weight);
    AddState(made, moment);
    if (change) change(made);
    const auto bytes = testing::BytesOf(made);
    EXPECT_EQ(VerifyPlan(testing::PlanIn(bytes)), absl::OkStatus());
    return PlanChecker(testing::PlanIn(bytes)).check();
  }

  RankPlan plan;
  uint32_t dp, tp, again, weight, moment, input, gradient, sum, updated;
};

TEST(Replicas, StayEqualWhereGradientsAreSummed) {
  Step step;
  step.Gradient();
  step.plan.Collective(0, 0, CollectiveKind::AllReduce, step.dp, step.gradient, step.sum, kElements);
  step.Update(step.sum);
  EXPECT_EQ(step.Check(), absl::OkStatus());
}

TEST(Replicas, DriftWhereNobodySumsGradients) {
  Step step;
  step.Gradient();
  step.Update(step.gradient);
  EXPECT_THAT(
      std::string(step.Check().message()),
      AllOf(HasSubstr("the proof of replicas fails: entry 'step' leaves state 'weight' (buffer 0) different along "
                      "'dp', where its layout says that all ranks have the same"),
            HasSubstr("copy"), HasSubstr("wrote it, which reads buffer 5 'updated', which differs there")));
}

TEST(Replicas, DriftWhereGradientsAreSummedAlongAnotherAxis) {
  Step step;
  step.Gradient();
  step.plan.Collective(0, 0, CollectiveKind::AllReduce, step.tp, step.gradient, step.sum, kElements);
  step.Update(step.sum);
  EXPECT_THAT(std::string(step.Check().message()), HasSubstr("different along 'dp'"));
}

TEST(Replicas, MayDifferWhereTheLayoutDividesThem) {
  Step step;
  step.Gradient();
  step.Update(step.gradient);
  EXPECT_EQ(step.Check([&](fbs::PlanT& plan) { Step::Divide(*plan.buffers[step.weight], 0, 2); }), absl::OkStatus());
}

// A part for each rank is another one for each, until it is gathered.
TEST(Replicas, AreGatheredFromParts) {
  for (const bool gathers : {true, false}) {
    Step step;
    const uint32_t part = step.plan.Buffer(0, "part", BufferKind::Temporary, kElements / 2);
    step.Gradient();
    step.plan.Collective(0, 0, CollectiveKind::ReduceScatter, step.dp, step.gradient, part, kElements / 2);
    step.plan.Collective(0, 0, CollectiveKind::AllGather, gathers ? step.dp : step.again, part, step.sum,
                         kElements / 2);
    step.Update(step.sum);
    const absl::Status status = step.Check();
    EXPECT_EQ(status.ok(), gathers) << status;
  }
}

// Places are numbered along both axes, so that a shift of them mixes the two.
TEST(Replicas, AreMixedByAShiftAlongSeveralAxes) {
  for (const bool both : {false, true}) {
    Step step;
    const uint32_t mixed = step.plan.Communicator("both", {0, 1});
    step.Gradient();
    step.plan.Collective(0, 0, CollectiveKind::Permute, both ? mixed : step.dp, step.gradient, step.sum, kElements);
    step.Update(step.sum);
    const absl::Status status = step.Check([&](fbs::PlanT& plan) {
      plan.programs[0]->segments[0]->commands[1]->body.AsCollective()->shift = 1;
      Step::Divide(*plan.buffers[step.weight], 0, 2);
    });
    EXPECT_EQ(status.ok(), !both) << status;
    if (both) EXPECT_THAT(std::string(status.message()), HasSubstr("different along 'tp', where"));
  }
}

// An input that all ranks have the same of is not fed from an output that differs.
TEST(Replicas, DriftThroughFeeds) {
  for (const bool sums : {true, false}) {
    Step step;
    const uint32_t fed = step.plan.Buffer(0, "fed", BufferKind::Input, kElements);
    const uint32_t output = step.plan.Buffer(0, "output", BufferKind::Output, kElements);
    step.plan.Add(0, 0, step.input, fed, step.gradient);
    if (sums) step.plan.Collective(0, 0, CollectiveKind::AllReduce, step.dp, step.gradient, output, kElements);
    if (!sums) step.plan.Copy(0, 0, step.gradient, output);
    const absl::Status status = step.Check([&](fbs::PlanT& plan) { plan.entries[0]->feeds.emplace_back(0, 1); });
    EXPECT_EQ(status.ok(), sums) << status;
    if (!sums) EXPECT_THAT(std::string(status.message()), HasSubstr("gives output 'output', which differs along 'dp'"));
  }
}

// The state of one run is the state of the next: one that another state makes different is refused as well.
TEST(Replicas, DriftThroughStates) {
  Step step;
  step.Gradient();
  step.plan.Copy(0, 0, step.gradient, step.moment);
  const auto divided = [&](fbs::PlanT& plan) { Step::Divide(*plan.buffers[step.moment], 0, 2); };
  EXPECT_EQ(step.Check(divided), absl::OkStatus());
  Step next;
  next.Update(next.moment);
  EXPECT_THAT(
      std::string(next.Check([&](fbs::PlanT& plan) { Step::Divide(*plan.buffers[next.moment], 0, 2); }).message()),
      HasSubstr("leaves state 'weight' (buffer 0) different along 'dp'"));
}

// Generated code that states on which inputs its results depend.
TEST(Replicas, DependOnWhatTheirKernelSays) {
  Step step;
  step.Update(step.input);
  const auto depends = [](const std::vector<uint32_t>& inputs) {
    return [inputs](fbs::PlanT& plan) {
      auto dependence = std::make_unique<fbs::DependenceT>();
      dependence->output = 2;
      dependence->inputs = inputs;
      plan.kernels[0]->dependences.push_back(std::move(dependence));
    };
  };
  EXPECT_EQ(step.Check(depends({0})), absl::OkStatus());
  Step other;
  other.Update(other.input);
  EXPECT_EQ(other.Check(depends({0, 1})).code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace bowline
