// Hangs and silent damage that users of other frameworks reported, each rebuilt as a tiny plan that must be refused for
// the right reason, beside the fixed form that must pass. Where the reports are about numbers alone, no plan can show
// it: see docs/checker.md.
// test/Execution/reported_bugs_test.py has deepspeedai/DeepSpeed 5545, NVIDIA/Megatron-LM 107 and pytorch/pytorch
// 64803, in plans that the compiler wrote.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "checker/PlanChecker.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Check/rank_runs.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace testing;  // bowline::testing
using fbs::BufferKind;
using fbs::CollectiveKind;

void Passes(fbs::PlanT plan) {
  const absl::Status status = CertifyPlan(plan);
  ASSERT_TRUE(status.ok()) << status;
  const auto bytes = BytesOf(plan);
  ASSERT_TRUE(VerifyPlan(PlanIn(bytes)).ok());
  std::mt19937 random(7);
  const auto meaning = Simulate(PlanIn(bytes), Issue::kCommunicationInOrder, 0, random);
  const ThreadOutcome threads = RunOnThreads(bytes, 0x7f, 11, std::chrono::seconds(60));
  EXPECT_TRUE(threads.status.ok()) << threads.status;
  EXPECT_EQ(threads.outputs, meaning.outputs);
}

// The page shows the messages that tests print.
void ExpectOnPage(const std::string& message) {
  std::ifstream file(BOWLINE_CHECKER_PAGE);
  const std::string page(std::istreambuf_iterator<char>(file), {});
  EXPECT_TRUE(absl::StrContains(page, message)) << "docs/checker.md does not show this any more:\n" << message;
}

std::string Refused(fbs::PlanT plan) {
  const auto bytes = BytesOf(plan);
  EXPECT_TRUE(VerifyPlan(PlanIn(bytes)).ok()) << VerifyPlan(PlanIn(bytes));
  const absl::Status status = PlanChecker(PlanIn(bytes)).check();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  return std::string(status.message());
}

// Every stage exchanges with both neighbours in the same fixed order: to the last, from the last, to the next, from the
// next. With four stages all wait for someone who sends as well. Even and odd stages must take turns.
// NVIDIA/Megatron-LM 5100.
fbs::PlanT NeighbourExchange(bool take_turns) {
  constexpr uint32_t kStages = 4;
  RankPlan plan({{"pp", kStages}, {"tp", 2}}, 0);
  plan.Streams({"compute"});
  const uint32_t pp = plan.Communicator("pp", {0});
  for (uint32_t r = 0; r < kStages; ++r) {
    const uint32_t x = plan.Buffer(r, "x", BufferKind::Input, 8);
    const uint32_t from_last = r > 0 ? plan.Buffer(r, "from_last", BufferKind::Output, 8) : 0;
    const uint32_t from_next = r + 1 < kStages ? plan.Buffer(r, "from_next", BufferKind::Output, 8) : 0;
    const auto to_last = [&] {
      if (r > 0) plan.Send(r, 0, pp, r - 1, x);
    };
    const auto of_last = [&] {
      if (r > 0) plan.Receive(r, 0, pp, r - 1, from_last);
    };
    const auto to_next = [&] {
      if (r + 1 < kStages) plan.Send(r, 0, pp, r + 1, x);
    };
    const auto of_next = [&] {
      if (r + 1 < kStages) plan.Receive(r, 0, pp, r + 1, from_next);
    };
    if (!take_turns) {
      to_last(), of_last(), to_next(), of_next();
    } else if (r % 2 == 0) {
      to_next(), of_last(), to_last(), of_next();
    } else {
      of_last(), to_next(), of_next(), to_last();
    }
  }
  return plan.Finish();
}

TEST(KnownDisasters, NeighboursThatAllSendFirst) {
  Passes(NeighbourExchange(true));
  EXPECT_THAT(Refused(NeighbourExchange(false)),
              AllOf(HasSubstr("the proof of no deadlock fails: 2 ranks wait for each other, on every machine:"),
                    HasSubstr("send to place 1 of 'pp'"), HasSubstr("send to place 0 of 'pp'")));
}

// Interleaved stages with a communicator for each direction of each pair: one rank begins them in another order than
// its peer. Streams of their own keep it from hanging at once; a device that starts them in the order of issue hangs.
// NVIDIA/Megatron-LM 5240.
fbs::PlanT CommunicatorsInAnyOrder(bool same_order) {
  RankPlan plan({{"pp", 2}}, 0);
  plan.Streams({"compute", "chunk0", "chunk1"});
  const uint32_t chunk0 = plan.Communicator("pp.chunk0", {0}), chunk1 = plan.Communicator("pp.chunk1", {0});
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t x = plan.Buffer(r, "x", BufferKind::Input, 8), y = plan.Buffer(r, "y", BufferKind::Output, 8);
    const bool first = r == 0 || same_order;
    const auto zero = [&] { r == 0 ? plan.Send(r, 1, chunk0, 1, x) : plan.Receive(r, 1, chunk0, 0, y); };
    const auto one = [&] { r == 0 ? plan.Receive(r, 2, chunk1, 1, y) : plan.Send(r, 2, chunk1, 0, x); };
    first ? (zero(), one()) : (one(), zero());
  }
  return plan.Finish();
}

TEST(KnownDisasters, CommunicatorsStartedInConflictingOrders) {
  Passes(CommunicatorsInAnyOrder(true));
  ExpectOnPage(Refused(CommunicatorsInAnyOrder(false)));
  EXPECT_THAT(
      Refused(CommunicatorsInAnyOrder(false)),
      AllOf(
          HasSubstr("the proof of no deadlock fails: 2 ranks wait for each other where a device starts communications "
                    "in the order in which they are issued"),
          HasSubstr("'pp.chunk0'"), HasSubstr("'pp.chunk1'")));
}

// Sums within a stage, sums over all ranks and transfers at once, each on a communicator and a stream of its own, as
// ZeRO beside tensor parallelism makes them. ROCm/rccl 2191: three communicators in flight; safe when every rank
// starts them in one order, which the checker proves here and a device's communicators must then keep.
fbs::PlanT ThreeCommunicators(bool one_order) {
  RankPlan plan({{"pp", 2}, {"tp", 2}}, 0);
  plan.Streams({"compute", "tp", "world", "pp"});
  const uint32_t tp = plan.Communicator("tp", {1}), world = plan.Communicator("world", {0, 1});
  const uint32_t pp = plan.Communicator("pp", {0});
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t x = plan.Buffer(r, "x", BufferKind::Input, 8);
    const uint32_t a = plan.Buffer(r, "a", BufferKind::Output, 8), b = plan.Buffer(r, "b", BufferKind::Output, 8);
    const uint32_t c = plan.Buffer(r, "c", BufferKind::Output, 8);
    plan.Collective(r, 1, CollectiveKind::AllReduce, tp, x, a, 8);
    const auto sum = [&] { plan.Collective(r, 2, CollectiveKind::AllReduce, world, x, b, 8); };
    const auto transfer = [&] {
      r == 0 ? plan.Send(r, 3, pp, 1, x) : plan.Receive(r, 3, pp, 0, c);
      if (r == 0) plan.Copy(r, 0, x, c);
    };
    r == 0 || one_order ? (sum(), transfer()) : (transfer(), sum());
  }
  return plan.Finish();
}

TEST(KnownDisasters, ThreeCommunicatorsAtOnce) {
  Passes(ThreeCommunicators(true));
  EXPECT_THAT(
      Refused(ThreeCommunicators(false)),
      AllOf(HasSubstr("the proof of no deadlock fails: 2 ranks wait for each other"), HasSubstr("conflicting orders"),
            HasSubstr("all_reduce on 'world'"), HasSubstr("send to place 1 of 'pp'")));
}

// 1F1B in which both neighbours send their values before they take the other's: activations of the next microbatch
// one way, gradients of the last one the other way, on one stream. pytorch/pytorch 172668.
fbs::PlanT ActivationsAgainstGradients(bool receive_first) {
  RankPlan plan({{"pp", 2}}, 0);
  plan.Streams({"compute", "transfers"});
  const uint32_t pp = plan.Communicator("pp", {0});
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t x = plan.Buffer(r, "x", BufferKind::Input, 8), y = plan.Buffer(r, "y", BufferKind::Output, 8);
    const auto send = [&] { plan.Send(r, 1, pp, 1 - r, x); };
    const auto receive = [&] { plan.Receive(r, 1, pp, 1 - r, y); };
    r == 1 && receive_first ? (receive(), send()) : (send(), receive());
  }
  return plan.Finish();
}

TEST(KnownDisasters, BothSendBeforeTheyReceive) {
  Passes(ActivationsAgainstGradients(true));
  ExpectOnPage(Refused(ActivationsAgainstGradients(false)));
  EXPECT_THAT(
      Refused(ActivationsAgainstGradients(false)),
      AllOf(HasSubstr("2 ranks wait for each other, on every machine:"),
            HasSubstr("\n  rank 0 (pp=0) is in entry 'step'"), HasSubstr("\n  rank 1 (pp=1) is in entry 'step'")));
}

// Gradients are scattered only for used parameters, so that some ranks do not join. deepspeedai/DeepSpeed 4808:
// there experts without tokens; in a plan ranks differ by their role alone.
fbs::PlanT ScatterOfSome(bool all_join) {
  RankPlan plan({{"pp", 2}, {"dp", 2}}, 0);
  plan.Streams({"compute"});
  const uint32_t world = plan.Communicator("world", {0, 1});
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t x = plan.Buffer(r, "x", BufferKind::Input, 32);
    for (uint32_t expert = 0; expert < 2; ++expert) {
      const uint32_t y = plan.Buffer(r, "y" + std::to_string(expert), BufferKind::Output, 8);
      if (all_join || r == 0 || expert == 0) {
        plan.Collective(r, 0, CollectiveKind::ReduceScatter, world, x, y, 8);
      } else {
        plan.Copy(r, 0, x, y);  // no tokens came here
      }
    }
  }
  return plan.Finish();
}

TEST(KnownDisasters, SomeRanksDoNotJoin) {
  Passes(ScatterOfSome(true));
  ExpectOnPage(Refused(ScatterOfSome(false)));
  EXPECT_THAT(
      Refused(ScatterOfSome(false)),
      AllOf(
          HasSubstr("the proof of matching fails: rank 0 (pp=0, dp=0) comes to"),
          HasSubstr("reduce_scatter on 'world', from model.stage0 (by test), collective 1 on 'world', counted from 0; "
                    "rank 2 (pp=1, dp=0) is in the group and issues only 1")));
}

// Parameters are gathered beside the computation, in an order that is not that of their use: the forward pass takes
// the values in memory, those of the last step. NVIDIA/Megatron-LM 950.
fbs::PlanT GatherAheadOfUse(bool wait) {
  RankPlan plan({{"dp", 2}}, -1);
  plan.Streams({"compute", "gathers"});
  plan.Events(2);
  const uint32_t dp = plan.Communicator("dp", {0});
  const uint32_t shard = plan.Buffer(0, "shard", BufferKind::Input, 8, 2),
                 x = plan.Buffer(0, "x", BufferKind::Input, 16);
  const uint32_t weight = plan.Buffer(0, "weight", BufferKind::Temporary, 16, 2);
  const uint32_t y = plan.Buffer(0, "y", BufferKind::Output, 16, 2);
  const uint32_t gather = plan.Segment(0, "gather");
  plan.Collective(0, 1, CollectiveKind::AllGather, dp, shard, weight, 8);
  plan.Signal(0, 1, 0, 2);
  const uint32_t use = plan.Segment(0, "use");
  // Without slots both uses wait for the first gather alone.
  plan.Wait(0, 0, 0, wait ? 2 : 1);
  plan.Add(0, 0, x, weight, y);
  plan.Call(0, gather, 0);
  plan.Call(0, gather, 1);
  plan.Call(0, use, 1);
  plan.Call(0, use, 0);
  return plan.Finish();
}

TEST(KnownDisasters, ParametersUsedBeforeTheyWereGathered) {
  Passes(GatherAheadOfUse(true));
  ExpectOnPage(Refused(GatherAheadOfUse(false)));
  EXPECT_THAT(Refused(GatherAheadOfUse(false)),
              AllOf(HasSubstr("the proof of no race fails"), HasSubstr("all_gather on 'dp'"),
                    HasSubstr("writes buffer 2 'weight' slot 1"),
                    HasSubstr("on stream 'compute', reads buffer 2 'weight' slot 1")));
}

// A gradient bucket is summed beside the backward pass that still adds to it: nothing hangs, numbers are wrong now and
// then.
fbs::PlanT SumBesideAccumulation(bool wait) {
  RankPlan plan({{"dp", 2}}, -1);
  plan.Streams({"compute", "sums"});
  plan.Events(1);
  const uint32_t dp = plan.Communicator("dp", {0});
  const uint32_t g = plan.Buffer(0, "g", BufferKind::Input, 16), sum = plan.Buffer(0, "sum", BufferKind::Temporary, 16);
  const uint32_t bucket = plan.Buffer(0, "bucket", BufferKind::Output, 16);
  plan.Add(0, 0, g, g, sum);
  if (!wait) plan.Signal(0, 0, 0);
  plan.Add(0, 0, g, g, sum);
  if (wait) plan.Signal(0, 0, 0);
  plan.Wait(0, 1, 0);
  plan.Collective(0, 1, CollectiveKind::AllReduce, dp, sum, bucket, 16);
  return plan.Finish();
}

TEST(KnownDisasters, BucketsSummedTooEarly) {
  Passes(SumBesideAccumulation(true));
  EXPECT_THAT(Refused(SumBesideAccumulation(false)),
              AllOf(HasSubstr("the proof of no race fails"), HasSubstr("command 2, launch of 'fixture_add'"),
                    HasSubstr("on stream 'sums', reads buffer 1 'sum'")));
}

}  // namespace
}  // namespace bowline
