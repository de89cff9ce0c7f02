// Buffers that are views of another buffer's bytes: gathers and scatters in place, parts of a whole, and refused views.
// An accepted plan runs, and computes the values of a plan that has other bytes for each buffer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "checker/PlanChecker.h"
#include "runtime/plan/meaning/plan_meaning.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Check/rank_runs.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using namespace testing;  // bowline::testing
using fbs::BufferKind;
using fbs::CollectiveKind;

constexpr uint32_t kRanks = 3;
constexpr int64_t kPart = 16;  // elements: 64 bytes
constexpr uint64_t kPartBytes = 64;

absl::Status Check(fbs::PlanT plan) {
  const auto bytes = BytesOf(plan);
  EXPECT_EQ(VerifyPlan(PlanIn(bytes)), absl::OkStatus());
  return PlanChecker(PlanIn(bytes)).check();
}

// The outputs of all ranks, in the simulator in every order, and on threads that exchange in memory and by TCP.
std::vector<std::vector<uint8_t>> Outputs(fbs::PlanT plan) {
  EXPECT_EQ(CertifyPlan(plan), absl::OkStatus());
  const auto bytes = BytesOf(plan);
  std::mt19937 random(1);
  const RankOutcome expected = Simulate(PlanIn(bytes), Issue::kCommunicationInOrder, 0, random);
  EXPECT_FALSE(expected.hangs || expected.mismatch);
  EXPECT_EQ(Simulate(PlanIn(bytes), Issue::kAsynchronous, 0x55, random).outputs, expected.outputs);
  const ThreadOutcome threads = RunOnThreads(bytes, 0x7f, 3, std::chrono::seconds(60));
  EXPECT_EQ(threads.status, absl::OkStatus());
  EXPECT_EQ(threads.outputs, expected.outputs);
  const ThreadOutcome tcp = RunOnThreads(bytes, 0x7f, 4, std::chrono::seconds(60), {}, Transport::kTcp);
  EXPECT_EQ(tcp.status, absl::OkStatus());
  EXPECT_EQ(tcp.outputs, expected.outputs);
  // On a device with memory of its own, streams that wait at random, and poison in buffers that will receive.
  const ThreadOutcome discrete = RunOnThreads(bytes, 0x7f, 5, std::chrono::seconds(60), "discrete:seed=3");
  EXPECT_EQ(discrete.status, absl::OkStatus());
  EXPECT_EQ(discrete.outputs, expected.outputs);
  return expected.outputs;
}

// The digests of the values that entry "step" leaves.
std::vector<fbs::ValueDigest> Values(fbs::PlanT plan) {
  EXPECT_EQ(CertifyPlan(plan), absl::OkStatus());
  EXPECT_EQ(plan.certificates.size(), 1u);
  return plan.certificates[0]->roles[0]->values;
}

bool Equal(const std::vector<fbs::ValueDigest>& a, const std::vector<fbs::ValueDigest>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const fbs::ValueDigest& x, const fbs::ValueDigest& y) {
    return x.low() == y.low() && x.high() == y.high();
  });
}

// Ranks dp x tp. Each rank of tp adds two inputs into its part of a whole, which is gathered and doubled.
struct Gather {
  explicit Gather(bool in_place) : plan({{"dp", 2}, {"tp", kRanks}}, -1) {
    plan.Streams({"compute", "side"});
    plan.Events(2);
    tp = plan.Communicator("tp", {1});
    dp = plan.Communicator("dp", {0});
    x = plan.Buffer(0, "x", BufferKind::Input, kPart);
    y = plan.Buffer(0, "y", BufferKind::Input, kPart);
    result = plan.Buffer(0, "result", BufferKind::Output, kRanks * kPart);
    whole = plan.Buffer(0, "whole", BufferKind::Temporary, kRanks * kPart);
    own = in_place ? plan.View(0, "own", whole, kPart, 0, {1}, kPartBytes)
                   : plan.Buffer(0, "own", BufferKind::Temporary, kPart);
  }

  void Write() { plan.Add(0, 0, x, y, own); }
  void Exchange(uint32_t communicator) {
    plan.Collective(0, 0, CollectiveKind::AllGather, communicator, own, whole, kPart);
  }
  void Read() { plan.Add(0, 0, whole, whole, result); }
  fbs::PlanT All() {
    Write();
    Exchange(tp);
    Read();
    return plan.Finish();
  }

  RankPlan plan;
  uint32_t tp, dp, x, y, whole, own, result;
};

TEST(Views, GatherInPlaceIsSoundAndGathers) {
  EXPECT_EQ(Check(Gather(true).All()), absl::OkStatus());
  EXPECT_EQ(Outputs(Gather(true).All()), Outputs(Gather(false).All()));
  EXPECT_TRUE(Equal(Values(Gather(true).All()), Values(Gather(false).All())));
}

TEST(Views, ScatterInPlaceIsSoundAndScatters) {
  const auto made = [](bool in_place) {
    RankPlan plan({{"tp", kRanks}}, -1);
    plan.Streams({"compute"});
    const uint32_t tp = plan.Communicator("tp", {0});
    const uint32_t x = plan.Buffer(0, "x", BufferKind::Input, kRanks * kPart);
    const uint32_t all = plan.Buffer(0, "all", BufferKind::Output, kRanks * kPart);
    const uint32_t part = plan.Buffer(0, "part", BufferKind::Output, kPart);
    const uint32_t whole = plan.Buffer(0, "whole", BufferKind::Temporary, kRanks * kPart);
    const uint32_t own = in_place ? plan.View(0, "own", whole, kPart, 0, {0}, kPartBytes)
                                  : plan.Buffer(0, "own", BufferKind::Temporary, kPart);
    plan.Add(0, 0, x, x, whole);
    plan.Collective(0, 0, CollectiveKind::ReduceScatter, tp, whole, own, kPart);
    plan.Add(0, 0, own, own, part);
    plan.Collective(0, 0, CollectiveKind::AllGather, tp, own, whole, kPart);
    plan.Copy(0, 0, whole, all);
    return plan.Finish();
  };
  EXPECT_EQ(Check(made(true)), absl::OkStatus());
  EXPECT_EQ(Outputs(made(true)), Outputs(made(false)));
  EXPECT_TRUE(Equal(Values(made(true)), Values(made(false))));
}

// Halves are written one by one, and read as one.
TEST(Views, PartsOfAWholeAreItsBytes) {
  const auto made = [](int64_t second) {
    RankPlan plan({{"dp", 1}}, -1);
    plan.Streams({"compute"});
    const uint32_t x = plan.Buffer(0, "x", BufferKind::Input, kPart);
    const uint32_t result = plan.Buffer(0, "result", BufferKind::Output, 2 * kPart);
    const uint32_t whole = plan.Buffer(0, "whole", BufferKind::Temporary, 2 * kPart);
    const uint32_t a = plan.View(0, "a", whole, kPart, 0), b = plan.View(0, "b", whole, second, kPartBytes);
    plan.Add(0, 0, x, x, a);
    plan.Copy(0, 0, a, b);
    plan.Add(0, 0, whole, whole, result);
    return plan.Finish();
  };
  EXPECT_EQ(Check(made(kPart)), absl::OkStatus());
  EXPECT_THAT(std::string(Check(made(kPart - 1)).message()), HasSubstr("the proof of initialisation fails"));
  fbs::PlanT no_view = made(kPart);
  no_view.buffers[4]->view = nullptr;
  EXPECT_THAT(std::string(Check(no_view).message()), HasSubstr("the proof of no clobber fails"));
}

std::string Refusal(const std::function<void(Gather&)>& commands,
                    const std::function<void(Gather&, fbs::PlanT&)>& change = {}) {
  Gather gather(true);
  commands(gather);
  fbs::PlanT plan = gather.plan.Finish();
  if (change) change(gather, plan);
  const absl::Status status = Check(plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  return std::string(status.message());
}

TEST(Views, WhatNobodyWroteIsNotGathered) {
  EXPECT_THAT(Refusal([](Gather& g) {
                g.Exchange(g.tp);
                g.Read();
              }),
              HasSubstr("the proof of initialisation fails"));
}

TEST(Views, AWholeOfWhichARankHasItsPartIsNotRead) {
  EXPECT_THAT(Refusal([](Gather& g) {
                g.Write();
                g.Read();
              }),
              HasSubstr("the proof of initialisation fails"));
}

// Bytes that a command reads of the part must have been written through the same view.
TEST(Views, APartIsWrittenWhole) {
  EXPECT_THAT(Refusal([](Gather& g) {
                const uint32_t half = g.plan.View(0, "half", g.whole, kPart / 2, 0, {1}, kPartBytes);
                const uint32_t other = g.plan.View(0, "other", g.whole, kPart / 4, 48, {1}, kPartBytes);
                g.plan.Add(0, 0, g.x, g.y, half);
                g.plan.Add(0, 0, g.x, g.y, other);
                g.Exchange(g.tp);
                g.Read();
              }),
              HasSubstr("the proof of initialisation fails"));
}

TEST(Views, PartsLieAlongTheAxesOfTheirCommunicator) {
  const auto aliasing = HasSubstr("the proof of aliasing fails");
  EXPECT_THAT(Refusal([](Gather& g) {
                g.Write();
                g.Exchange(g.dp);
                g.Read();
              }),
              aliasing);
  // At the begin of the whole on each rank, as one who forgets the place writes it.
  EXPECT_THAT(Refusal(
                  [](Gather& g) {
                    g.Write();
                    g.Exchange(g.tp);
                    g.Read();
                  },
                  [](Gather& g, fbs::PlanT& plan) {
                    *plan.buffers[g.own]->view = fbs::ViewT{}, plan.buffers[g.own]->view->of = g.whole;
                  }),
              aliasing);
  // A sum of parts is none of the forms in place.
  EXPECT_THAT(Refusal(
                  [](Gather& g) {
                    g.Write();
                    g.Exchange(g.tp);
                    g.Read();
                  },
                  [](Gather&, fbs::PlanT& plan) {
                    plan.programs[0]->segments[0]->commands[1]->body.AsCollective()->kind = CollectiveKind::AllReduce;
                  }),
              aliasing);
}

TEST(Views, ALaunchMayNotWriteAPartOfWhatItReads) {
  EXPECT_THAT(Refusal([](Gather& g) {
                const uint32_t first = g.plan.View(0, "first", g.whole, kPart, 0);
                g.Write();
                g.Exchange(g.tp);
                g.plan.Add(0, 0, first, g.x, g.own);
                g.Exchange(g.tp);
                g.Read();
              }),
              HasSubstr("the proof of aliasing fails"));
}

TEST(Views, AnotherValueOnTheBytesOfOneRankIsAClobber) {
  for (const uint64_t part : {0, 1, 2}) {
    EXPECT_THAT(Refusal([&](Gather& g) {
                  const uint32_t begin = 64 * ((static_cast<uint32_t>(kRanks * kPartBytes) + 2 * 64 + 63) / 64);
                  const uint32_t other =
                      g.plan.BufferAt(0, "other", BufferKind::Temporary, kPart, begin + part * kPartBytes);
                  g.Write();
                  g.plan.Add(0, 0, g.x, g.x, other);
                  g.Exchange(g.tp);
                  g.plan.Add(0, 0, other, other, g.own);
                  g.Exchange(g.tp);
                  g.Read();
                }),
                AnyOf(HasSubstr("the proof of no clobber fails"), HasSubstr("the proof of initialisation fails")))
        << part;
  }
}

TEST(Views, NothingOrdersAPartOnAnotherStream) {
  const auto streams = [](bool ordered) {
    return [=](Gather& g) {
      g.Write();
      if (ordered) {
        g.plan.Signal(0, 0, 0);
        g.plan.Wait(0, 1, 0);
      }
      g.plan.Collective(0, 1, CollectiveKind::AllGather, g.tp, g.own, g.whole, kPart);
      g.plan.Signal(0, 1, 1);
      g.plan.Wait(0, 0, 1);
      g.Read();
    };
  };
  EXPECT_THAT(Refusal(streams(false)), HasSubstr("the proof of no race fails"));
  Gather ordered(true);
  streams(true)(ordered);
  EXPECT_EQ(Check(ordered.plan.Finish()), absl::OkStatus());
}

// A copy for all ranks of the values of one rank's part.
TEST(Views, PartsAreDifferentAlongTheirAxes) {
  const auto made = [](bool gathers) {
    Gather g(true);
    const uint32_t state = g.plan.Buffer(0, "state", BufferKind::State, kPart);
    g.plan.Copy(0, 0, state, g.own);
    if (gathers) g.Exchange(g.tp);
    const uint32_t second = g.plan.View(0, "second", g.whole, kPart, kPartBytes);
    g.plan.Copy(0, 0, gathers ? second : g.own, state);
    g.Write();
    g.Exchange(g.tp);
    g.Read();
    fbs::PlanT plan = g.plan.Finish();
    auto added = std::make_unique<fbs::StateT>();
    added->buffer = state;
    added->key = "state";
    added->flags = fbs::StateFlag::Saved;
    added->init = "zeros";
    plan.states.push_back(std::move(added));
    for (const uint32_t input : {g.x, g.y}) {  // each rank has its own
      plan.buffers[input]->layout = std::make_unique<fbs::LayoutT>();
      plan.buffers[input]->layout->global_shape = {int64_t{2} * kRanks * kPart};
      plan.buffers[input]->layout->dim_shardings.push_back(std::make_unique<fbs::DimShardingT>());
      plan.buffers[input]->layout->dim_shardings[0]->axes = {0, 1};
    }
    return plan;
  };
  EXPECT_EQ(Check(made(true)), absl::OkStatus());
  EXPECT_THAT(std::string(Check(made(false)).message()), HasSubstr("different along 'tp'"));
}

// Ring attention's exchange: each rank hands its part to its neighbour, of one role, and adds the part that arrives,
// until it had all. Both ways at once, in one operation of two pieces.
TEST(Views, NeighboursOfARoleExchangeInARing) {
  const auto made = [](bool reads_early) {
    RankPlan plan({{"cp", kRanks}}, -1);
    plan.Streams({"compute", "ring"});
    plan.Events(2 * kRanks);
    const uint32_t ring = plan.Communicator("cp", {0});
    const uint32_t x = plan.Buffer(0, "x", BufferKind::Input, 2 * kPart);
    const uint32_t result = plan.Buffer(0, "result", BufferKind::Output, 2 * kPart);
    uint32_t held = plan.Buffer(0, "held0", BufferKind::Temporary, 2 * kPart);
    uint32_t sum = plan.Buffer(0, "sum0", BufferKind::Temporary, 2 * kPart);
    plan.Copy(0, 0, x, held);
    plan.Copy(0, 0, x, sum);
    for (uint32_t step = 1; step < kRanks; ++step) {
      const std::string number = std::to_string(step);
      const uint32_t next = plan.Buffer(0, "held" + number, BufferKind::Temporary, 2 * kPart);
      const uint32_t more = plan.Buffer(0, "sum" + number, BufferKind::Temporary, 2 * kPart);
      plan.Signal(0, 0, 2 * step - 2);
      plan.Wait(0, 1, 2 * step - 2);
      plan.Collective(0, 1, CollectiveKind::Permute, ring, held, next, kPart);
      if (!reads_early) {
        plan.Signal(0, 1, 2 * step - 1);
        plan.Wait(0, 0, 2 * step - 1);
      }
      plan.Add(0, 0, sum, next, more);
      held = next;
      sum = more;
    }
    plan.Copy(0, 0, sum, result);
    fbs::PlanT finished = plan.Finish();
    for (const auto& command : finished.programs[0]->segments[0]->commands) {
      fbs::CollectiveT* permute = command->body.AsCollective();
      if (permute == nullptr) continue;
      permute->shift = 1;
      const fbs::Piece first = permute->pieces[0];
      permute->pieces.emplace_back(fbs::Operand(first.source().buffer(), kPartBytes),
                                   fbs::Operand(first.destination().buffer(), kPartBytes), kPart);
    }
    return finished;
  };
  EXPECT_EQ(Check(made(false)), absl::OkStatus());
  // All ranks get the sum over the ring, each in another order: the numbers are small whole ones.
  const auto outputs = Outputs(made(false));
  fbs::PlanT plan = made(false);
  const auto bytes = BytesOf(plan);
  for (size_t i = 0; i < 2 * kPart; ++i) {
    float expected = 0;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      float value = 0;
      std::memcpy(&value, InitialArena(PlanIn(bytes), rank, 0).data() + i * 4, 4);
      expected += value;
    }
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      float value = 0;
      std::memcpy(&value, outputs[rank].data() + i * 4, 4);
      EXPECT_EQ(value, expected) << i;
    }
  }
  EXPECT_THAT(std::string(Check(made(true)).message()), HasSubstr("the proof of no race fails"));
}

struct BadView {
  const char* name;
  std::function<void(fbs::PlanT& plan, fbs::BufferT& own)> change;
  const char* why;
};

class BadViews : public ::testing::TestWithParam<BadView> {};

TEST_P(BadViews, AreRefusedAtLoad) {
  Gather gather(true);
  const uint32_t own = gather.own;
  fbs::PlanT plan = gather.All();
  GetParam().change(plan, *plan.buffers[own]);
  const auto bytes = BytesOf(plan);
  EXPECT_THAT(std::string(VerifyPlan(PlanIn(bytes)).message()), HasSubstr(GetParam().why));
}

using P = fbs::PlanT;
using B = fbs::BufferT;
INSTANTIATE_TEST_SUITE_P(
    All, BadViews,
    ::testing::Values(
        BadView{"OfItself", [](P&, B& own) { own.view->of = 4; }, "is a view of buffer 4, which must stand before it"},
        BadView{"OfNothing", [](P&, B& own) { own.view->of = 9; }, "is a view of buffer 9, which must stand before it"},
        BadView{"OfAView",
                [](P& plan, B&) {
                  plan.buffers[3]->view = std::make_unique<fbs::ViewT>();
                  plan.buffers[3]->view->of = 2;
                  plan.buffers[2]->kind = BufferKind::Temporary;
                  plan.buffers[3]->offset = plan.buffers[2]->offset;
                },
                "which is a view itself"},
        BadView{"OfAnInput", [](P&, B& own) { own.view->of = 0; }, "both must be Temporary"},
        BadView{"OfAnotherType", [](P&, B& own) { own.dtype = fbs::DType::I32; },
                "is a view of buffer 3 'whole', but differs from it"},
        BadView{"BeforeTheWhole", [](P&, B& own) { own.offset -= 64; },
                "is a view of buffer 3 'whole', but reaches out of it"},
        BadView{"BehindTheWhole", [](P&, B& own) { own.offset += 64; },
                "the views of 3 ranks, 64 bytes apart, reach out of it"},
        BadView{"TooFarApart", [](P&, B& own) { own.view->stride = ~uint64_t{3}; }, "bytes apart, reach out of it"},
        BadView{"TooClose", [](P&, B& own) { own.view->stride = 60; }, "must be a multiple of 4 and at least its 64"},
        BadView{"Misaligned", [](P&, B& own) { own.view->stride = 65; }, "must be a multiple of 4 and at least its 64"},
        BadView{"AlongNothing", [](P&, B& own) { own.view->axes = {7}; }, "ax"},
        BadView{"StrideAlone", [](P&, B& own) { own.view->axes.clear(); }, "stride 64 of its view must be 0"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace bowline
