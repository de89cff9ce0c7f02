// Assumptions that docs/checker.md lists. For each a plan that all proofs accept, a session too, and that goes wrong
// because the assumption does not hold: the list is true, and nothing of it is proven in secret.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "checker/PlanChecker.h"
#include "runtime/comm/loopback/loopback_group.h"
#include "runtime/executor/session.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"
#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Plan/fixture_image.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using namespace testing;  // bowline::testing
using fbs::BufferKind;
using fbs::CollectiveKind;

constexpr int64_t kElements = 16;
using Values = std::vector<float>;

// Proven, certified, and in a file.
std::vector<uint8_t> Accepted(fbs::PlanT plan) {
  EXPECT_EQ(CertifyPlan(plan), absl::OkStatus());
  std::vector<uint8_t> bytes = BytesOf(plan);
  EXPECT_EQ(VerifyPlan(PlanIn(bytes)), absl::OkStatus());
  EXPECT_EQ(PlanChecker(PlanIn(bytes)).check(), absl::OkStatus());
  return bytes;
}

// Runs an operation by `exchange`, or does something else.
using Runner = std::function<absl::Status(hal::Exchange&, const hal::Operation&, absl::Span<const hal::HostPiece>)>;

// The communicator 'dp' of a group, whose operations are run by a Runner.
class OtherExchange : public hal::Exchange {
 public:
  OtherExchange(std::unique_ptr<hal::Exchange> exchange, Runner run)
      : exchange_(std::move(exchange)), run_(std::move(run)) {}

  const std::string& name() const override { return exchange_->name(); }
  const std::vector<int>& ranks() const override { return exchange_->ranks(); }
  int self() const override { return exchange_->self(); }
  absl::Status Run(hal::Operation operation, absl::Span<const hal::HostPiece> pieces) override {
    return run_(*exchange_, operation, pieces);
  }
  absl::Status Break(absl::Status why) override { return exchange_->Break(std::move(why)); }
  absl::Status status() const override { return exchange_->status(); }
  absl::Status Report(const hal::Operation& operation, uint64_t elements, uint64_t collectives) override {
    return exchange_->Report(operation, elements, collectives);
  }
  absl::Status Complain(const std::string& failure) override { return exchange_->Complain(failure); }
  bool emulates_link() const override { return exchange_->emulates_link(); }

 private:
  const std::unique_ptr<hal::Exchange> exchange_;
  const Runner run_;
};

class OtherGroup : public RankGroup {
 public:
  OtherGroup(RankGroup& group, Runner run) : group_(group), run_(std::move(run)) {}

  int rank() const override { return group_.rank(); }
  int ranks() const override { return group_.ranks(); }
  absl::StatusOr<std::unique_ptr<hal::Exchange>> CreateExchange(absl::string_view name, absl::Span<const int> members,
                                                                const LinkOptions& link) override {
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Exchange> exchange, group_.CreateExchange(name, members, link));
    if (run_ == nullptr || !absl::StartsWith(name, "dp@")) return exchange;
    return std::make_unique<OtherExchange>(std::move(exchange), run_);
  }
  void Abort(absl::Status why) override { group_.Abort(std::move(why)); }
  absl::Status status() const override { return group_.status(); }

 private:
  RankGroup& group_;
  const Runner run_;
};

// Runs `body` on each rank with a session that makes all proofs, and where `runner` is given, operations of the
// communicator 'dp' by it. Returns the first error.
absl::Status OnRanks(const std::vector<uint8_t>& bytes, const std::function<absl::Status(Session&)>& body,
                     const Runner& runner = nullptr, const std::string& driver = "") {
  const int ranks = static_cast<int>(RankCount(PlanIn(bytes)));
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<LoopbackGroup> group,
                           LoopbackGroup::Create(ranks, {std::chrono::seconds(20)}));
  std::vector<absl::Status> statuses(static_cast<size_t>(ranks));
  const auto run = [&](int rank) -> absl::Status {
    const std::unique_ptr<RankGroup> view = group->AsRank(rank);
    OtherGroup other(*view, runner);
    const auto as_rank = [&]() -> absl::Status {
      BOWLINE_ASSIGN_OR_RETURN(LoadedPlan loaded, LoadedPlan::FromBytes(bytes));
      SessionOptions options;
      options.group = ranks == 1 ? nullptr : &other;
      options.driver = driver;
      if (!driver.empty()) options.driver_path = BOWLINE_TEST_PLUGINS;
      BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(std::move(loaded), options));
      return body(*session);
    };
    const absl::Status status = as_rank();
    if (!status.ok()) view->Abort(status);
    return status;
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { statuses[static_cast<size_t>(rank)] = run(rank); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Set(Session& session, uint32_t buffer, float value) {
  const Values values(static_cast<size_t>(kElements), value);
  return session.Write(session.BufferAt(buffer),
                       {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)});
}

Values Get(Session& session, uint32_t buffer) {
  Values values(static_cast<size_t>(kElements));
  EXPECT_EQ(session.Read(session.BufferAt(buffer),
                         {reinterpret_cast<uint8_t*>(values.data()), values.size() * sizeof(float)}),
            absl::OkStatus());
  return values;
}

void AddState(fbs::PlanT& plan, uint32_t buffer, const char* key, fbs::StateFlag flags) {
  auto state = std::make_unique<fbs::StateT>();
  state->buffer = buffer;
  state->key = key;
  state->flags = flags;
  state->init = "zeros";
  plan.states.push_back(std::move(state));
}

// A kernel writes every byte of its outputs. This code is launched for all elements but the last.
TEST(Assumptions, KernelsWriteAllThatTheyWrite) {
  RankPlan made({{"dp", 1}}, -1);
  made.Streams({"compute"});
  const uint32_t x = made.Buffer(0, "x", BufferKind::Input, kElements);
  const uint32_t y = made.Buffer(0, "y", BufferKind::Output, kElements);
  made.Add(0, 0, x, x, y);
  fbs::PlanT plan = made.Finish();
  SetExtent(*plan.kernels[0], kElements - 1);
  SealCodes(plan);  // the code says that it was made for that
  const absl::Status status = OnRanks(Accepted(std::move(plan)), [&](Session& session) -> absl::Status {
    for (const float before : {5.0f, 7.0f}) {
      BOWLINE_RETURN_IF_ERROR(Set(session, x, 1));
      const uint64_t last = RangeOf(*session.plan().buffers()->Get(y), 0).end - sizeof(float);
      BOWLINE_RETURN_IF_ERROR(session.arena().Write(last, {reinterpret_cast<const uint8_t*>(&before), sizeof(float)}));
      BOWLINE_RETURN_IF_ERROR(session.Run("step"));
      EXPECT_EQ(Get(session, y).front(), 2);
      EXPECT_EQ(Get(session, y).back(), before) << "nobody wrote it";
    }
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
}

// Two ranks sum `x` into `y`; nobody uses `other`.
struct Sum {
  Sum() {
    RankPlan made({{"dp", 2}}, -1);
    made.Streams({"compute"});
    const uint32_t dp = made.Communicator("dp", {0});
    x = made.Buffer(0, "x", BufferKind::Input, kElements);
    y = made.Buffer(0, "y", BufferKind::Output, kElements);
    other = made.Buffer(0, "other", BufferKind::State, kElements);
    made.Collective(0, 0, CollectiveKind::AllReduce, dp, x, y, kElements);
    fbs::PlanT plan = made.Finish();
    AddState(plan, other, "other", fbs::StateFlag::Saved);
    bytes = Accepted(std::move(plan));
  }

  // `y` and `other` of rank 0 after a step from a `y` of 7, an `other` of 5 and inputs of 1.
  std::pair<Values, Values> Step(const Runner& runner) const {
    std::pair<Values, Values> results;
    EXPECT_EQ(OnRanks(
                  bytes,
                  [&](Session& session) -> absl::Status {
                    const Values before(static_cast<size_t>(kElements), 7);
                    BOWLINE_RETURN_IF_ERROR(
                        session.arena().Write(RangeOf(*session.plan().buffers()->Get(y), 0).begin,
                                              {reinterpret_cast<const uint8_t*>(before.data()), before.size() * 4}));
                    BOWLINE_RETURN_IF_ERROR(Set(session, other, 5));
                    BOWLINE_RETURN_IF_ERROR(Set(session, x, 1));
                    BOWLINE_RETURN_IF_ERROR(session.Run("step"));
                    if (session.rank() == 0) results = {Get(session, y), Get(session, other)};
                    return absl::OkStatus();
                  },
                  runner),
              absl::OkStatus());
    return results;
  }

  uint32_t x, y, other;
  std::vector<uint8_t> bytes;
};

// A communication ends when all its members have joined it. This one ends at once.
TEST(Assumptions, CommunicationsEndWhenAllHaveJoined) {
  const Sum sum;
  const Runner right = [](hal::Exchange& exchange, const hal::Operation& operation, const auto& pieces) {
    return exchange.Run(operation, pieces);
  };
  EXPECT_THAT(sum.Step(right).first, Each(2.0f));
  EXPECT_THAT(sum.Step([](auto&, auto&, auto) { return absl::OkStatus(); }).first, Each(7.0f)) << "nobody summed";
}

// A communication touches no memory but its operands. This one writes into a buffer that is none of them.
TEST(Assumptions, CommunicationsTouchTheirOperandsAlone) {
  const Sum sum;
  const fbs::Plan& plan = PlanIn(sum.bytes);
  const auto begin = [&](uint32_t buffer) { return RangeOf(*plan.buffers()->Get(buffer), 0).begin; };
  const auto distance = static_cast<std::ptrdiff_t>(begin(sum.other)) - static_cast<std::ptrdiff_t>(begin(sum.y));
  const auto [y, other] = sum.Step([&](hal::Exchange& exchange, const hal::Operation& operation, const auto& pieces) {
    const float wrong = 9;
    std::memcpy(static_cast<uint8_t*>(pieces[0].receive) + distance, &wrong, sizeof(wrong));
    return exchange.Run(operation, pieces);
  });
  EXPECT_THAT(y, Each(2.0f));
  EXPECT_EQ(other.front(), 9) << "nobody of the plan wrote it";
  EXPECT_EQ(other.back(), 5);
}

// A stream waits for events, and another one comes to its commands meanwhile: here a copy is late, and nobody waits.
TEST(Assumptions, StreamsWaitForEvents) {
  RankPlan made({{"dp", 1}}, -1);
  made.Streams({"compute", "copy"});
  made.Events(1);
  const uint32_t x = made.Buffer(0, "x", BufferKind::Input, kElements);
  const uint32_t copied = made.Buffer(0, "copied", BufferKind::Temporary, kElements);
  const uint32_t y = made.Buffer(0, "y", BufferKind::Output, kElements);
  made.Copy(0, 1, x, copied);
  made.Signal(0, 1, 0);
  made.Wait(0, 0, 0);
  made.Add(0, 0, copied, copied, y);
  const std::vector<uint8_t> bytes = Accepted(made.Finish());
  for (const bool is_late : {false, true}) {
    const absl::Status status = OnRanks(
        bytes,
        [&](Session& session) -> absl::Status {
          for (const float value : {1.0f, 5.0f}) {
            BOWLINE_RETURN_IF_ERROR(Set(session, x, value));
            BOWLINE_RETURN_IF_ERROR(session.Run("step"));
          }
          EXPECT_THAT(Get(session, y), Each(is_late ? 2.0f : 10.0f)) << "the sum is of this step, or of the one before";
          return absl::OkStatus();
        },
        nullptr, is_late ? "late_stream" : "");
    EXPECT_EQ(status, absl::OkStatus());
  }
}

// A session runs the entry of kind Init first. Here the caller runs another one before it.
TEST(Assumptions, SessionsInitialiseStatesFirst) {
  EXPECT_EQ(OnRanks(Accepted(MakePlan(FixtureImage())),
                    [&](Session& session) -> absl::Status {
                      const auto step = [&] {
                        const std::vector<int32_t> tokens(5, 3);
                        for (const uint32_t slot : {0u, 1u}) {
                          EXPECT_EQ(session.Write(session.BufferAt(kTokens, slot),
                                                  {reinterpret_cast<const uint8_t*>(tokens.data()), 20}),
                                    absl::OkStatus());
                        }
                        EXPECT_EQ(session.Run("step"), absl::OkStatus());
                        std::vector<float> values(40);
                        EXPECT_EQ(
                            session.Read(session.BufferAt(kResult), {reinterpret_cast<uint8_t*>(values.data()), 160}),
                            absl::OkStatus());
                        return values;
                      };
                      const std::vector<float> before = step();
                      BOWLINE_RETURN_IF_ERROR(session.Run("init"));
                      EXPECT_NE(step(), before) << "those were no weights";
                      return absl::OkStatus();
                    }),
            absl::OkStatus());
}

// Ranks run the same entries in the same order.
TEST(Assumptions, RanksRunTheSameEntries) {
  RankPlan made({{"dp", 2}}, -1);
  made.Streams({"compute"});
  const uint32_t dp = made.Communicator("dp", {0});
  const uint32_t x = made.Buffer(0, "x", BufferKind::Input, kElements);
  const uint32_t y = made.Buffer(0, "y", BufferKind::Output, kElements);
  made.Collective(0, 0, CollectiveKind::AllReduce, dp, x, y, kElements);
  fbs::PlanT plan = made.Finish();
  plan.programs.push_back(std::make_unique<fbs::ProgramT>(*plan.programs[0]));
  plan.programs[1]->name = "other";
  plan.programs[1]->segments[0]->commands[0]->body.AsCollective()->reduction = fbs::Reduction::Max;
  plan.entries.push_back(std::make_unique<fbs::EntryT>(*plan.entries[0]));
  plan.entries[1]->name = "other";
  plan.entries[1]->program = 1;
  const std::vector<uint8_t> bytes = Accepted(std::move(plan));
  const auto run = [&](bool alike) {
    return OnRanks(bytes, [&, alike](Session& session) -> absl::Status {
      BOWLINE_RETURN_IF_ERROR(Set(session, x, 1));
      return session.Run(alike || session.rank() == 0 ? "step" : "other");
    });
  };
  EXPECT_EQ(run(true), absl::OkStatus());
  EXPECT_THAT(std::string(run(false).message()), HasSubstr("all_reduce"));
}

// A weight that all ranks have is updated with an input that all ranks are said to have.
struct Update {
  Update() : made({{"dp", 2}}, -1) {
    made.Streams({"compute"});
    x = made.Buffer(0, "x", BufferKind::Input, kElements);
    weight = made.Buffer(0, "weight", BufferKind::State, kElements);
    updated = made.Buffer(0, "updated", BufferKind::Temporary, kElements);
    y = made.Buffer(0, "y", BufferKind::Output, kElements);
    made.Add(0, 0, weight, x, updated);
    made.Copy(0, 0, updated, weight);
    made.Copy(0, 0, weight, y);
    fbs::PlanT plan = made.Finish();
    AddState(plan, weight, "weight", fbs::StateFlag::Saved);
    bytes = Accepted(std::move(plan));
  }

  // The weight of each rank after a step, from these weights and inputs by rank.
  std::vector<float> Step(const std::vector<float>& weights, const std::vector<float>& inputs) {
    std::vector<float> results(2);
    EXPECT_EQ(OnRanks(bytes,
                      [&](Session& session) -> absl::Status {
                        BOWLINE_RETURN_IF_ERROR(Set(session, weight, weights[session.rank()]));
                        BOWLINE_RETURN_IF_ERROR(Set(session, x, inputs[session.rank()]));
                        BOWLINE_RETURN_IF_ERROR(session.Run("step"));
                        results[session.rank()] = Get(session, weight).front();
                        return absl::OkStatus();
                      }),
              absl::OkStatus());
    return results;
  }

  RankPlan made;
  uint32_t x, weight, updated, y;
  std::vector<uint8_t> bytes;
};

TEST(Assumptions, CallersGiveRanksTheSameInputs) {
  Update update;
  EXPECT_EQ(update.Step({1, 1}, {2, 2}), (Values{3, 3}));
  EXPECT_EQ(update.Step({1, 1}, {2, 4}), (Values{3, 5})) << "replicas drift";
}

// As from a checkpoint that is another one on rank 1.
TEST(Assumptions, StatesAreThoseThatWereSaved) {
  EXPECT_EQ(Update().Step({1, 6}, {2, 2}), (Values{3, 8})) << "replicas drift";
}

// A mirror has the value of the tensor of its key: here only the tensor is updated.
TEST(Assumptions, PlansUpdateMirrors) {
  RankPlan made({{"dp", 1}}, -1);
  made.Streams({"compute"});
  const uint32_t x = made.Buffer(0, "x", BufferKind::Input, kElements);
  const uint32_t weight = made.Buffer(0, "weight", BufferKind::State, kElements);
  const uint32_t mirror = made.Buffer(0, "mirror", BufferKind::State, kElements);
  const uint32_t updated = made.Buffer(0, "updated", BufferKind::Temporary, kElements);
  const uint32_t y = made.Buffer(0, "y", BufferKind::Output, kElements);
  made.Add(0, 0, weight, x, updated);
  made.Copy(0, 0, updated, weight);
  made.Copy(0, 0, mirror, y);
  fbs::PlanT plan = made.Finish();
  AddState(plan, weight, "weight", fbs::StateFlag::Saved);
  AddState(plan, mirror, "weight", fbs::StateFlag::Mirror);
  EXPECT_EQ(OnRanks(Accepted(std::move(plan)),
                    [&](Session& session) -> absl::Status {
                      BOWLINE_RETURN_IF_ERROR(Set(session, weight, 1));
                      BOWLINE_RETURN_IF_ERROR(Set(session, mirror, 1));
                      BOWLINE_RETURN_IF_ERROR(Set(session, x, 2));
                      BOWLINE_RETURN_IF_ERROR(session.Run("step"));
                      EXPECT_THAT(Get(session, weight), Each(3.0f));
                      EXPECT_THAT(Get(session, mirror), Each(1.0f)) << "it has the value of another step";
                      return absl::OkStatus();
                    }),
            absl::OkStatus());
}

// Row numbers of which a kernel is told that they are right, and are not: it takes the nearest row, and nobody hears.
TEST(Assumptions, RowNumbersAreInRangeWhereAKernelSaysSo) {
  fbs::PlanT plan = MakePlan(FixtureImage());
  plan.entries[1]->inputs[0]->limit = 0;
  {
    auto bytes = BytesOf(plan);
    EXPECT_THAT(std::string(PlanChecker(PlanIn(bytes)).check().message()), HasSubstr("the proof of indices fails"));
  }
  plan.kernels[kGather]->attributes.push_back(std::make_unique<fbs::AttributeT>());
  plan.kernels[kGather]->attributes.back()->name = "in_range";
  plan.kernels[kGather]->attributes.back()->ints = {1};
  EXPECT_EQ(OnRanks(Accepted(std::move(plan)),
                    [&](Session& session) -> absl::Status {
                      const auto result = [&](int32_t token) -> std::vector<float> {
                        const std::vector<int32_t> tokens(5, token);
                        for (const uint32_t slot : {0u, 1u}) {
                          EXPECT_EQ(session.Write(session.BufferAt(kTokens, slot),
                                                  {reinterpret_cast<const uint8_t*>(tokens.data()), 20}),
                                    absl::OkStatus());
                        }
                        EXPECT_EQ(session.Run("step"), absl::OkStatus());
                        std::vector<float> values(40);
                        EXPECT_EQ(
                            session.Read(session.BufferAt(kResult), {reinterpret_cast<uint8_t*>(values.data()), 160}),
                            absl::OkStatus());
                        return values;
                      };
                      BOWLINE_RETURN_IF_ERROR(session.Run("init"));
                      const std::vector<float> last = result(31);
                      EXPECT_NE(result(30), last);
                      EXPECT_EQ(result(1000), last) << "of 32 rows";
                      EXPECT_EQ(result(-5), result(0));
                      return absl::OkStatus();
                    }),
            absl::OkStatus());
}

}  // namespace
}  // namespace bowline
