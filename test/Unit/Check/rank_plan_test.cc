// Sound plans of several ranks, roles and streams, and small unsound ones: each proof that concerns ranks refuses the
// plans that it should, for the right reason.

#include "test/Unit/Check/rank_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "checker/PlanChecker.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "test/Unit/Check/rank_runs.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace testing;  // bowline::testing
using fbs::BufferKind;
using fbs::CollectiveKind;

absl::Status Check(fbs::PlanT plan) {
  const auto bytes = BytesOf(plan);
  EXPECT_TRUE(VerifyPlan(PlanIn(bytes)).ok()) << VerifyPlan(PlanIn(bytes));
  return PlanChecker(PlanIn(bytes)).check();
}

std::string Message(fbs::PlanT plan) {
  const absl::Status status = Check(std::move(plan));
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  return std::string(status.message());
}

TEST(RankPlanGood, PipelinesAndShardedLoopsAreSoundAndRun) {
  std::vector<fbs::PlanT> plans;
  for (const uint16_t first : {uint16_t{0}, uint16_t{1}}) {
    plans.push_back(MakePipeline(2, 1, 4, first));
    plans.push_back(MakePipeline(3, 2, 5, first));
    plans.push_back(MakePipeline(4, 1, 2, first));
    plans.push_back(MakeShardedLoop(2, 2, 5, first));
    plans.push_back(MakeShardedLoop(1, 3, 3, first));
  }
  std::mt19937 random(1);
  for (fbs::PlanT& plan : plans) {
    const absl::Status certified = CertifyPlan(plan);
    ASSERT_TRUE(certified.ok()) << certified;
    const auto bytes = BytesOf(plan);
    const absl::Status verified = VerifyPlan(PlanIn(bytes));
    ASSERT_TRUE(verified.ok()) << verified;
    EXPECT_TRUE(RequireCertificates(PlanIn(bytes)).ok());
    const RankOutcome expected = Simulate(PlanIn(bytes), Issue::kCommunicationInOrder, 0, random);
    EXPECT_FALSE(expected.hangs || expected.mismatch);
    for (const Issue issue : {Issue::kAsynchronous, Issue::kInlineFirstStream}) {
      const RankOutcome outcome = Simulate(PlanIn(bytes), issue, 0x55, random);
      EXPECT_FALSE(outcome.hangs || outcome.mismatch);
      EXPECT_EQ(outcome.outputs, expected.outputs);
    }
    const ThreadOutcome threads = RunOnThreads(bytes, 0x7f, 3, std::chrono::seconds(60));
    EXPECT_TRUE(threads.status.ok()) << threads.status;
    EXPECT_EQ(threads.outputs, expected.outputs);
  }
}

TEST(RankPlanGood, ReportsRoles) {
  fbs::PlanT plan = MakePipeline(2, 3, 4);
  CheckReport report;
  ASSERT_TRUE(CertifyPlan(plan, &report).ok());
  EXPECT_EQ(report.ranks, 6u);
  ASSERT_EQ(report.roles.size(), 2u);
  EXPECT_EQ(report.roles[1].name, "stage1");
  const auto& arena = report.roles[1].in(fbs::MemorySpace::Device);
  EXPECT_EQ(arena.highestByte, arena.bytes);
  EXPECT_THAT(formatReport(report),
              AllOf(HasSubstr("ranks   6 (pp=2, dp=3), 2 roles"), HasSubstr("entry step             of role 'stage1' "),
                    HasSubstr("proven  no deadlock")));
}

// Two streams, `first` before `second` by an event or not.
fbs::PlanT Ordered(bool signal, bool wait) {
  RankPlan plan({{"dp", 2}}, -1);
  plan.Streams({"compute", "side"});
  plan.Events(1);
  const uint32_t x = plan.Buffer(0, "x", BufferKind::Input, 16), y = plan.Buffer(0, "y", BufferKind::Temporary, 16);
  const uint32_t z = plan.Buffer(0, "z", BufferKind::Output, 16);
  plan.Add(0, 0, x, x, y);
  if (signal) plan.Signal(0, 0, 0);
  if (wait) plan.Wait(0, 1, 0);
  plan.Add(0, 1, y, x, z);
  return plan.Finish();
}

TEST(Races, EventsOrderStreams) {
  EXPECT_TRUE(Check(Ordered(true, true)).ok());
  EXPECT_THAT(
      Message(Ordered(true, false)),
      AllOf(HasSubstr("the proof of no race fails: entry 'step', segment 'all' (call 0, slot 0), command 0, launch "
                      "of 'fixture_add', from model.stage0 (by test), on stream 'compute', writes buffer 1 'y'; "),
            HasSubstr("on stream 'side', reads buffer 1 'y'; both touch bytes [64, 128)"),
            HasSubstr("signal an event on 'compute' after the first and wait for it on 'side'")));
  EXPECT_THAT(Message(Ordered(false, true)), AllOf(HasSubstr("the proof of events fails"),
                                                   HasSubstr("nothing signalled event 0 in this entry before")));
}

TEST(Races, ASignalTooEarlyOrdersNothing) {
  fbs::PlanT plan = Ordered(true, true);
  auto& commands = plan.programs[0]->segments[0]->commands;
  std::swap(commands[0], commands[1]);
  EXPECT_THAT(Message(std::move(plan)), HasSubstr("the proof of no race fails"));
}

TEST(Races, OrdersAddUp) {
  // a -> b by one event, b -> c by another: a is before c, too.
  for (const bool second : {true, false}) {
    RankPlan plan({{"dp", 1}}, -1);
    plan.Streams({"a", "b", "c"});
    plan.Events(2);
    const uint32_t x = plan.Buffer(0, "x", BufferKind::Input, 16), y = plan.Buffer(0, "y", BufferKind::Output, 16);
    plan.Copy(0, 0, x, y);
    plan.Signal(0, 0, 0);
    plan.Wait(0, 1, 0);
    if (second) plan.Signal(0, 1, 1);
    if (second) plan.Wait(0, 2, 1);
    plan.Copy(0, 2, x, y);
    fbs::PlanT made = plan.Finish();
    if (second) {
      EXPECT_TRUE(Check(std::move(made)).ok());
    } else {
      EXPECT_THAT(Message(std::move(made)), HasSubstr("the proof of no race fails"));
    }
  }
}

TEST(Races, AWriteWaitsForReadersOfEachStream) {
  for (const uint32_t missing : {0u, 1u, 2u}) {
    RankPlan plan({{"dp", 1}}, -1);
    plan.Streams({"a", "b", "c"});
    plan.Events(3);
    const uint32_t x = plan.Buffer(0, "x", BufferKind::Input, 16), t = plan.Buffer(0, "t", BufferKind::Temporary, 16);
    const uint32_t y = plan.Buffer(0, "y", BufferKind::Output, 16), z = plan.Buffer(0, "z", BufferKind::Output, 16);
    plan.Copy(0, 0, x, t);
    plan.Signal(0, 0, 0);
    plan.Wait(0, 1, 0);
    plan.Wait(0, 2, 0);
    plan.Copy(0, 1, t, y);
    plan.Signal(0, 1, 1);
    plan.Copy(0, 2, t, z);
    plan.Signal(0, 2, 2);
    if (missing != 1) plan.Wait(0, 0, 1);
    if (missing != 2) plan.Wait(0, 0, 2);
    plan.Copy(0, 0, x, t);
    fbs::PlanT made = plan.Finish();
    if (missing == 0) {
      EXPECT_TRUE(Check(std::move(made)).ok());
    } else {
      EXPECT_THAT(Message(std::move(made)), AllOf(HasSubstr("the proof of no race fails"),
                                                  HasSubstr(missing == 1 ? "stream 'b', reads" : "stream 'c', reads")));
    }
  }
}

TEST(Races, EventsOfSlotsAreTheirOwn) {
  for (const uint32_t slots : {1u, 2u}) {
    RankPlan plan({{"dp", 1}}, -1);
    plan.Streams({"a", "b"});
    plan.Events(2);
    const uint32_t x = plan.Buffer(0, "x", BufferKind::Input, 16, 2),
                   y = plan.Buffer(0, "y", BufferKind::Temporary, 16, 2);
    const uint32_t z = plan.Buffer(0, "z", BufferKind::Output, 16, 2);
    const uint32_t write = plan.Segment(0, "write");
    plan.Copy(0, 0, x, y);
    plan.Signal(0, 0, 0, slots);
    const uint32_t read = plan.Segment(0, "read");
    plan.Wait(0, 1, 0, slots);
    plan.Copy(0, 1, y, z);
    plan.Call(0, write, 0);
    plan.Call(0, read, 0);
    plan.Call(0, write, 1);
    plan.Call(0, read, 1);
    EXPECT_TRUE(Check(plan.Finish()).ok());
  }
  // The reader of slot 1 waits for the event of slot 0.
  RankPlan plan({{"dp", 1}}, -1);
  plan.Streams({"a", "b"});
  plan.Events(2);
  const uint32_t x = plan.Buffer(0, "x", BufferKind::Input, 16, 2), z = plan.Buffer(0, "z", BufferKind::Output, 16, 2);
  const uint32_t write = plan.Segment(0, "write");
  plan.Copy(0, 0, x, z);
  plan.Signal(0, 0, 0, 2);
  const uint32_t again = plan.Segment(0, "again");
  plan.Wait(0, 1, 0, 1);
  plan.Copy(0, 1, x, z);
  plan.Call(0, write, 0);
  plan.Call(0, write, 1);
  plan.Call(0, again, 1);
  EXPECT_THAT(Message(plan.Finish()), AllOf(HasSubstr("the proof of no race fails"), HasSubstr("'z' slot 1")));
}

TEST(Races, ACommunicatorServesOneStream) {
  for (const bool ordered : {true, false}) {
    RankPlan plan({{"dp", 2}}, -1);
    plan.Streams({"compute", "a", "b"});
    plan.Events(1);
    const uint32_t all = plan.Communicator("all", {0});
    const uint32_t x = plan.Buffer(0, "x", BufferKind::Input, 16);
    const uint32_t y = plan.Buffer(0, "y", BufferKind::Output, 16), z = plan.Buffer(0, "z", BufferKind::Output, 16);
    plan.Collective(0, 1, CollectiveKind::AllReduce, all, x, y, 16);
    if (ordered) plan.Signal(0, 1, 0);
    if (ordered) plan.Wait(0, 2, 0);
    plan.Collective(0, 2, CollectiveKind::AllReduce, all, x, z, 16);
    fbs::PlanT made = plan.Finish();
    if (ordered) {
      EXPECT_TRUE(Check(std::move(made)).ok());
    } else {
      EXPECT_THAT(Message(std::move(made)), AllOf(HasSubstr("the proof of one stream fails"),
                                                  HasSubstr("a communicator serves one operation at a time")));
    }
  }
}

// Stage 0 sends y, gets a value that stage 1 made of y, and writes y anew. The answer's arrival does not show that the
// send is over on stage 0; a later send in the same stream that stage 1 has received does.
fbs::PlanT SentAndAnswered(bool sends_more, bool waits_for_more) {
  RankPlan plan({{"dp", 2}, {"pp", 2}}, 1);
  plan.Streams({"compute", "out", "in"});
  plan.Events(2);
  const uint32_t there = plan.Communicator("there", {1}), back = plan.Communicator("back", {1});
  const uint32_t x = plan.Buffer(0, "x", BufferKind::Input, 16), y = plan.Buffer(0, "y", BufferKind::Output, 16);
  const uint32_t answer = plan.Buffer(0, "answer", BufferKind::Temporary, 16);
  plan.Add(0, 0, x, x, y);
  plan.Signal(0, 0, 0);
  plan.Wait(0, 1, 0);
  plan.Send(0, 1, there, 1, y);
  if (sends_more) plan.Send(0, 1, there, 1, x);
  plan.Receive(0, 2, back, 1, answer);
  plan.Signal(0, 2, 1);
  plan.Wait(0, 0, 1);
  plan.Add(0, 0, x, answer, y);
  const uint32_t a = plan.Buffer(1, "a", BufferKind::Temporary, 16), b = plan.Buffer(1, "b", BufferKind::Output, 16);
  const uint32_t c = plan.Buffer(1, "c", BufferKind::Output, 16);
  plan.Receive(1, 2, there, 0, a);
  if (sends_more && waits_for_more) plan.Receive(1, 2, there, 0, b);
  plan.Signal(1, 2, 0);
  if (sends_more && !waits_for_more) plan.Receive(1, 2, there, 0, b);
  if (!sends_more) plan.Copy(1, 2, a, b);
  plan.Wait(1, 0, 0);
  plan.Add(1, 0, a, a, c);
  plan.Signal(1, 0, 1);
  plan.Wait(1, 1, 1);
  plan.Send(1, 1, back, 0, c);
  return plan.Finish();
}

TEST(Races, OtherRanksOrderStreams) {
  EXPECT_TRUE(Check(SentAndAnswered(true, true)).ok()) << Check(SentAndAnswered(true, true));
  for (const bool sends_more : {true, false}) {
    EXPECT_THAT(Message(SentAndAnswered(sends_more, false)),
                AllOf(HasSubstr("the proof of no race fails"), HasSubstr("on stream 'out', reads buffer 1 'y'"),
                      HasSubstr("on stream 'compute', writes buffer 1 'y'")));
  }
}

// Stage 0 sends y and then x to stage 2, which has both before it comes to a collective of all stages; when that is
// over on stage 0, y is written anew.
fbs::PlanT SentBeforeAll(CollectiveKind kind) {
  RankPlan plan({{"pp", 4}}, 0);
  plan.Streams({"compute", "out", "in"});
  plan.Events(2);
  const uint32_t there = plan.Communicator("there", {0}), all = plan.Communicator("all", {0});
  for (uint32_t r = 0; r < 4; ++r) {
    const uint32_t x = plan.Buffer(r, "x", BufferKind::Input, 16), y = plan.Buffer(r, "y", BufferKind::Output, 16);
    const uint32_t met = plan.Buffer(r, "met", BufferKind::Temporary, 64);
    plan.Add(r, 0, x, x, y);
    if (r == 0) {
      plan.Signal(0, 0, 0);
      plan.Wait(0, 1, 0);
      plan.Send(0, 1, there, 2, y);
      plan.Send(0, 1, there, 2, x);
    }
    if (r == 2) {
      const uint32_t a = plan.Buffer(2, "a", BufferKind::Temporary, 16),
                     b = plan.Buffer(2, "b", BufferKind::Temporary, 16);
      plan.Receive(2, 2, there, 0, a);
      plan.Receive(2, 2, there, 0, b);
    }
    plan.Collective(r, 2, kind, all, x, met, 16);
    if (r == 0) {
      plan.Signal(0, 2, 1);
      plan.Wait(0, 0, 1);
      plan.Add(0, 0, x, x, y);
    }
  }
  fbs::PlanT made = plan.Finish();
  for (const auto& program : made.programs) {
    for (const auto& command : program->segments[0]->commands) {
      fbs::CollectiveT* collective = command->body.AsCollective();
      if (collective != nullptr && kind == CollectiveKind::Permute) collective->shift = 1;
    }
  }
  return made;
}

TEST(Races, ARingOrdersNoMoreThanNeighbours) {
  EXPECT_TRUE(Check(SentBeforeAll(CollectiveKind::AllGather)).ok()) << Check(SentBeforeAll(CollectiveKind::AllGather));
  // The stages before and after the first one say nothing of the one between them.
  EXPECT_THAT(Message(SentBeforeAll(CollectiveKind::Permute)),
              AllOf(HasSubstr("the proof of no race fails"), HasSubstr("on stream 'out', reads buffer"),
                    HasSubstr("on stream 'compute', writes buffer")));
}

// A weight in each of two roles.
fbs::PlanT TwoWeights() {
  RankPlan plan({{"pp", 2}, {"dp", 2}}, 0);
  plan.Streams({"compute"});
  const uint32_t first = plan.Buffer(0, "first", BufferKind::State, 8);
  const uint32_t second = plan.Buffer(1, "second", BufferKind::State, 8);
  plan.Copy(0, 0, first, plan.Buffer(0, "a", BufferKind::Temporary, 8));
  plan.Copy(1, 0, second, plan.Buffer(1, "b", BufferKind::Temporary, 8));
  fbs::PlanT made = plan.Finish();
  for (const uint32_t buffer : {first, second}) {
    made.states.push_back(std::make_unique<fbs::StateT>());
    made.states.back()->buffer = buffer;
    made.states.back()->key = made.buffers[buffer]->name;
    made.states.back()->flags = fbs::StateFlag::Saved;
    made.states.back()->init = "zeros";
  }
  return made;
}

TEST(Roles, SaveTensorsOfDifferentKeys) {
  fbs::PlanT plan = TwoWeights();
  const auto good = BytesOf(plan);
  EXPECT_EQ(VerifyPlan(PlanIn(good)), absl::OkStatus());
  plan.states[1]->key = plan.states[0]->key;
  const auto bytes = BytesOf(plan);
  EXPECT_THAT(std::string(VerifyPlan(PlanIn(bytes)).message()),
              HasSubstr("state 1 'first': another role saves a tensor of this key"));
}

TEST(Roles, DivideNoTensor) {
  fbs::PlanT plan = TwoWeights();
  plan.buffers[0]->layout = std::make_unique<fbs::LayoutT>();
  plan.buffers[0]->layout->global_shape = {16};
  plan.buffers[0]->layout->flat_axes = {0};
  const auto bytes = BytesOf(plan);
  EXPECT_THAT(std::string(VerifyPlan(PlanIn(bytes)).message()),
              HasSubstr("layout: axis 'pp' tells roles apart, each of which has buffers of its own"));
}

// Stages in a ring: each sends to the next before it receives from the one before.
fbs::PlanT Ring(uint32_t stages, uint32_t others, bool first_receives) {
  RankPlan plan({{"dp", others}, {"pp", stages}, {"tp", others}}, 1);
  plan.Streams({"compute"});
  const uint32_t pp = plan.Communicator("pp", {1});
  for (uint32_t r = 0; r < stages; ++r) {
    const uint32_t x = plan.Buffer(r, "x", BufferKind::Input, 16), y = plan.Buffer(r, "y", BufferKind::Output, 16);
    const bool receives_first = first_receives && r == 0;
    if (receives_first) plan.Receive(r, 0, pp, (r + stages - 1) % stages, y);
    plan.Send(r, 0, pp, (r + 1) % stages, x);
    if (!receives_first) plan.Receive(r, 0, pp, (r + stages - 1) % stages, y);
  }
  return plan.Finish();
}

TEST(Deadlocks, TheCircleIsNamedRankByRank) {
  EXPECT_TRUE(Check(Ring(4, 2, true)).ok());
  const std::string message = Message(Ring(3, 2, false));
  EXPECT_THAT(message,
              AllOf(HasSubstr("the proof of no deadlock fails: 3 ranks wait for each other, on every machine:\n"),
                    HasSubstr("\n  rank 0 (dp=0, pp=0, tp=0) is in entry 'step', segment 'all' (call 0, slot 0), "
                              "command 0, send to place 1 of 'pp', from model.stage0 (by test),\n    and waits for "
                              "rank 2 (dp=0, pp=1, tp=0), which comes to "
                              "entry 'step', segment 'all' (call 0, slot 0), command 1, receive from place 0 of "
                              "'pp', from model.stage1 (by test),\n    only after "
                              "entry 'step', segment 'all' (call 0, slot 0), command 0, send to place 2 of 'pp'")));
}

// Two stages exchange x and y on two streams. The commands of stage 0 in between decide on which machine both hang.
TEST(Deadlocks, TheMachineIsNamed) {
  enum Kind { kSound, kConflictingIssue, kInlineWait, kOneStream };
  for (const Kind kind : {kSound, kConflictingIssue, kInlineWait, kOneStream}) {
    RankPlan plan({{"pp", 2}}, 0);
    plan.Streams({"compute", "a", "b"});
    plan.Events(1);
    const uint32_t ab = plan.Communicator("ab", {0}), ba = plan.Communicator("ba", {0});
    const uint16_t second = kind == kOneStream ? 1 : 2;
    for (uint32_t r = 0; r < 2; ++r) {
      const uint32_t x = plan.Buffer(r, "x", BufferKind::Input, 16), y = plan.Buffer(r, "y", BufferKind::Temporary, 16);
      const uint32_t z = plan.Buffer(r, "z", BufferKind::Output, 16);
      const auto first_operation = [&] { r == 0 ? plan.Send(r, 1, ab, 1, x) : plan.Receive(r, 1, ab, 0, y); };
      const auto second_operation = [&] {
        r == 0 ? plan.Receive(r, second, ba, 1, y) : plan.Send(r, second, ba, 0, x);
      };
      const bool turned = r == 1 && kind != kSound;
      turned ? second_operation() : first_operation();
      if (kind == kInlineWait) {
        // Compute waits for the operations issued so far: on a CPU nothing more is issued until these are over.
        plan.Signal(r, turned ? second : 1, 0);
        plan.Wait(r, 0, 0);
      }
      turned ? first_operation() : second_operation();
      plan.Copy(r, 0, x, z);
    }
    fbs::PlanT made = plan.Finish();
    if (kind == kSound) {
      EXPECT_TRUE(Check(std::move(made)).ok()) << Check(std::move(made));
      continue;
    }
    const char* machine = kind == kOneStream ? "on every machine"
                          : kind == kInlineWait
                              ? "issued only when the first stream is done with all earlier ones, as on CPUs"
                              : "as NCCL may; ranks issue them in conflicting orders";
    EXPECT_THAT(Message(std::move(made)), AllOf(HasSubstr("2 ranks wait for each other"), HasSubstr(machine)));
  }
}

TEST(Matching, MembersIssueTheSame) {
  const auto world = [](auto change) {
    RankPlan plan({{"pp", 2}, {"dp", 2}}, 0);
    plan.Streams({"compute"});
    const uint32_t all = plan.Communicator("world", {0, 1}), pp = plan.Communicator("pp", {0});
    for (uint32_t r = 0; r < 2; ++r) {
      const uint32_t x = plan.Buffer(r, "x", BufferKind::Input, 16), y = plan.Buffer(r, "y", BufferKind::Output, 16);
      const uint32_t z = plan.Buffer(r, "z", BufferKind::Output, 16);
      plan.Collective(r, 0, CollectiveKind::AllReduce, all, x, y, 16);
      r == 0 ? plan.Send(r, 0, pp, 1, x) : plan.Receive(r, 0, pp, 0, z);
      if (r == 0) plan.Copy(r, 0, x, z);
    }
    fbs::PlanT made = plan.Finish();
    change(made.programs[1]->segments[0]->commands);
    return made;
  };
  using Commands = std::vector<std::unique_ptr<fbs::CommandT>>;
  EXPECT_TRUE(Check(world([](Commands&) {})).ok());
  EXPECT_THAT(Message(world([](Commands& c) { c[0]->body.AsCollective()->reduction = fbs::Reduction::Max; })),
              AllOf(HasSubstr("the proof of matching fails: rank 0 (pp=0, dp=0) comes to entry 'step'"),
                    HasSubstr("rank 2 (pp=1, dp=0) comes to"), HasSubstr("one reduces by sum, the other by max")));
  EXPECT_THAT(Message(world([](Commands& c) {
                c[1]->body.AsReceive()->ranges[0] = fbs::Range(fbs::Operand(4, 0), 8);
                c.push_back(std::make_unique<fbs::CommandT>(*c[1]));
                c[2]->body.AsReceive()->ranges[0] = fbs::Range(fbs::Operand(4, 32), 8);
                c[2]->body.AsReceive()->communicator = 1;
                c[2]->body.AsReceive()->ranges.push_back(fbs::Range(fbs::Operand(5, 0), 16));
              })),
              HasSubstr("one moves 16 elements in range 0, the other 8"));
  EXPECT_THAT(
      Message(world([](Commands& c) { c.push_back(std::make_unique<fbs::CommandT>(*c[1])); })),
      AllOf(HasSubstr("number 1 of its kind, counted from 0"), HasSubstr("issues only 1 sends to go with it on 'pp'")));
  EXPECT_THAT(
      Message(world([](Commands& c) { c.push_back(std::make_unique<fbs::CommandT>(*c[0])); })),
      AllOf(HasSubstr("collective 1 on 'world', counted from 0"), HasSubstr("is in the group and issues only 1")));
}

// Stages and copies pass a tensor around one ring, in two pieces, and each stage then around another one of its copies.
fbs::PlanT MakeRings(const std::function<void(fbs::CollectiveT& first, fbs::CollectiveT& second)>& change) {
  RankPlan plan({{"pp", 2}, {"dp", 2}}, 0);
  plan.Streams({"compute"});
  const uint32_t all = plan.Communicator("world", {0, 1}), dp = plan.Communicator("dp", {1});
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t x = plan.Buffer(r, "x", BufferKind::Input, 16), y = plan.Buffer(r, "y", BufferKind::Temporary, 16);
    const uint32_t z = plan.Buffer(r, "z", BufferKind::Output, 16);
    plan.Collective(r, 0, CollectiveKind::Permute, all, x, y, 8);
    plan.Collective(r, 0, CollectiveKind::Permute, dp, y, z, 16);
  }
  fbs::PlanT made = plan.Finish();
  for (const auto& program : made.programs) {
    fbs::CollectiveT& first = *program->segments[0]->commands[0]->body.AsCollective();
    fbs::CollectiveT& second = *program->segments[0]->commands[1]->body.AsCollective();
    first.shift = 3;
    first.pieces.emplace_back(fbs::Operand(first.pieces[0].source().buffer(), 32),
                              fbs::Operand(first.pieces[0].destination().buffer(), 32), 8);
    second.shift = 1;
    if (program == made.programs[1]) change(first, second);
  }
  return made;
}

TEST(Matching, MembersOfARingShiftAlike) {
  using C = fbs::CollectiveT;
  EXPECT_TRUE(Check(MakeRings([](C&, C&) {})).ok()) << Check(MakeRings([](C&, C&) {}));
  const auto refusal = [&](auto change) { return Message(MakeRings(change)); };
  EXPECT_THAT(refusal([](C& first, C&) { first.shift = 1; }),
              AllOf(HasSubstr("the proof of matching fails: rank 0 (pp=0, dp=0) comes to entry 'step'"),
                    HasSubstr("permute on 'world'"), HasSubstr("rank 2 (pp=1, dp=0) comes to"),
                    HasSubstr("one shifts by 3, the other by 1")));
  EXPECT_THAT(refusal([](C& first, C&) {
                const uint32_t from = first.pieces[0].source().buffer(), to = first.pieces[0].destination().buffer();
                first.pieces[0] = fbs::Piece(fbs::Operand(from, 0), fbs::Operand(to, 0), 4);
                first.pieces[1] = fbs::Piece(fbs::Operand(from, 16), fbs::Operand(to, 16), 12);
              }),
              HasSubstr("one moves 8 elements in piece 0, the other 4"));
  EXPECT_THAT(refusal([](C& first, C&) { first.kind = CollectiveKind::AllReduce; }),
              HasSubstr("one is Permute, the other AllReduce"));
  // A neighbour would read data that has arrived.
  EXPECT_THAT(refusal([](C&, C& second) {
                second.pieces[0] = fbs::Piece(second.pieces[0].source(), second.pieces[0].source(), 16);
              }),
              HasSubstr("without a declared in-place pair"));
}

TEST(Matching, ARingShiftsToSomebodyElse) {
  const auto refusal = [](auto change) {
    fbs::PlanT made = MakeRings(change);
    const auto bytes = BytesOf(made);
    return std::string(VerifyPlan(PlanIn(bytes)).message());
  };
  using C = fbs::CollectiveT;
  for (const uint32_t shift : {0u, 4u, ~0u}) {
    EXPECT_THAT(
        refusal([&](C& first, C&) { first.shift = shift; }),
        HasSubstr("collective Permute: unknown shift " + std::to_string(shift) + " among 4 ranks; it must be 1 to 3"));
  }
  EXPECT_THAT(refusal([](C&, C& second) { second.shift = 2; }),
              HasSubstr("unknown shift 2 among 2 ranks; it must be 1 to 1"));
}

}  // namespace
}  // namespace bowline
