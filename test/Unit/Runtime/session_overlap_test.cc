// Two runs in flight: the same bits as one run at a time, on every driver that computes, with several streams and
// ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "checker/PlanChecker.h"
#include "runtime/drivers/builtin_drivers.h"
#include "runtime/executor/session.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Plan/fixture_image.h"
#include "test/Unit/Plan/plan_fixture.h"
#include "test/Unit/Runtime/comm_fixture.h"
#include "test/Unit/Runtime/ptx_fixture.h"
#include "test/Unit/Runtime/session_tensors.h"

namespace bowline {
namespace {

using fbs::BufferKind;
using ::testing::AllOf;
using testing::BytesOf;
using testing::CreateRanks;
using ::testing::HasSubstr;
using testing::OnEachRank;
using testing::RankPlan;
using testing::ReadTensor;
using testing::WriteTensor;

// How sessions run.
struct Way {
  const char* name;
  const char* driver;
  hal::StreamMode compute;

  bool is_card() const { return absl::StartsWith(driver, "cuda"); }
};
const Way kWays[] = {{"Cpu", "cpu", hal::StreamMode::kInline},
                     {"CpuBeside", "cpu", hal::StreamMode::kWorker},
                     {"Discrete", "discrete:seed=1", hal::StreamMode::kInline},
                     {"DiscreteLate", "discrete:seed=2", hal::StreamMode::kInline},
                     {"Cuda", "cuda:device=0,graphs=0", hal::StreamMode::kInline},
                     {"CudaGraphs", "cuda:device=0,graphs=1", hal::StreamMode::kInline}};

// The same plan for cards: the fixture's code is PTX there, which is launched by grid.
void MakeForCards(fbs::PlanT& plan) {
  plan.target->device = "cuda";
  plan.target->arch = "nvptx64";
  plan.target->cpu = "sm_90";
  for (const auto& image : plan.images) {
    fbs::CodeT& code = *image->codes.front();
    code.format = "ptx";
    code.data = testing::PtxFixture();
  }
  for (const auto& kernel : plan.kernels) {
    if (kernel->geometry.type != fbs::Geometry::ByRange) continue;
    fbs::GridT grid;
    grid.blocks = {3};
    grid.threads = {64};
    grid.constants = {kernel->geometry.AsByRange()->extent};
    kernel->geometry.Set(std::move(grid));
  }
}

fbs::PlanT Overlapping(fbs::PlanT plan) {
  for (const auto& entry : plan.entries) testing::AllowTwoRuns(plan, *entry);
  return plan;
}

std::unique_ptr<Session> Open(
    fbs::PlanT plan, const Way& way, RankGroup* group = nullptr,
    const std::function<void(absl::string_view)>& note = [](absl::string_view text) { ADD_FAILURE() << text; }) {
  if (way.is_card()) MakeForCards(plan);
  auto loaded = LoadedPlan::FromBytes(BytesOf(plan));
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  SessionOptions options;
  options.driver = way.driver;
  options.compute = way.compute;
  options.group = group;
  options.prove = false;
  options.note = note;
  auto session = Session::Create(*std::move(loaded), options);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

const fbs::Entry& StepOf(const Session& session) {
  return *session.plan().entries()->Get(static_cast<uint32_t>(*session.FindEntry("step")));
}

// Every slot of every port; `buffer` is the port's.
template <typename Ports>
void ForEachTensor(const Session& session, const Ports* ports, const std::function<void(const TensorRef&)>& body) {
  for (uint32_t i = 0; i < SizeOf(ports); ++i) {
    const uint32_t buffer = ports->Get(i)->buffer();
    for (uint32_t slot = 0; slot < session.plan().buffers()->Get(buffer)->slots(); ++slot) {
      body(session.BufferAt(buffer, slot));
    }
  }
}

// Inputs drawn from the seed, for a rank and a run. Sums of small integers are exact, so that an error is a difference.
void WriteInputs(Session& session, uint32_t seed, int run) {
  std::mt19937 random(seed + 1000 * static_cast<uint32_t>(run) + session.rank());
  ForEachTensor(session, StepOf(session).inputs(), [&](const TensorRef& tensor) {
    std::vector<float> values(tensor.bytes / sizeof(float));
    for (float& value : values) value = static_cast<float>(random() % 64);
    WriteTensor<float>(session, tensor, values);
  });
}

std::vector<float> ReadOutputs(const Session& session) {
  std::vector<float> all;
  ForEachTensor(session, StepOf(session).outputs(), [&](const TensorRef& tensor) {
    const std::vector<float> values = ReadTensor<float>(session, tensor);
    all.insert(all.end(), values.begin(), values.end());
  });
  return all;
}

using Outputs = std::vector<std::vector<float>>;  // by run

Outputs RunOneByOne(Session& session, uint32_t seed, int runs) {
  Outputs outputs;
  for (int run = 0; run < runs; ++run) {
    WriteInputs(session, seed, run);
    EXPECT_EQ(session.Run("step"), absl::OkStatus());
    outputs.push_back(ReadOutputs(session));
  }
  return outputs;
}

// Outputs of a run are read while the next one is under way, and the inputs of the one after it written.
Outputs RunTwoInFlight(Session& session, uint32_t seed, int runs) {
  const int entry = *session.FindEntry("step");
  Outputs outputs;
  std::optional<RunTicket> before;
  for (int run = 0; run <= runs; ++run) {
    std::optional<RunTicket> ticket;
    if (run < runs) {
      WriteInputs(session, seed, run);
      const auto started = session.Start(entry);
      EXPECT_TRUE(started.ok()) << started.status();
      if (!started.ok()) return outputs;
      ticket = *started;
    }
    if (before.has_value()) {
      EXPECT_EQ(session.Wait(*before), absl::OkStatus());
      outputs.push_back(ReadOutputs(session));
    }
    before = ticket;
  }
  return outputs;
}

class Overlap : public ::testing::TestWithParam<Way> {
 protected:
  // Without a card, tests of it are skipped, unless there should be one.
  void SetUp() override {
    if (!GetParam().is_card()) return;
    const auto device = AllDrivers("").CreateDevice("cuda", {});
    if (absl::IsUnavailable(device.status()) && std::getenv("BOWLINE_REQUIRE_CARD") == nullptr) {
      GTEST_SKIP() << device.status().message();
    }
  }
};

void ExpectTheSameRuns(const fbs::PlanT& plan, const Way& way, int runs) {
  const fbs::PlanT overlapping = Overlapping(plan);
  fbs::PlanT checked = overlapping;
  const std::vector<uint8_t> bytes = BytesOf(checked);
  const absl::Status sound = PlanChecker(testing::PlanIn(bytes)).check();
  ASSERT_EQ(sound, absl::OkStatus());
  const int ranks = static_cast<int>(RankCount(testing::PlanIn(bytes)));
  const uint32_t seed = TestSeed();
  std::vector<Outputs> alone(static_cast<size_t>(ranks)), two = alone;
  const auto run_all = [&](const fbs::PlanT& which, const Way& how, std::vector<Outputs>& outputs, auto run) {
    testing::Ranks world = CreateRanks(ranks, testing::kLong);
    OnEachRank(ranks, [&](int rank) {
      const auto at = static_cast<size_t>(rank);
      const auto session = Open(which, how, world.groups[at].get());
      if (session != nullptr) outputs[at] = run(*session, seed, runs);
    });
    OnEachRank(ranks, [&](int rank) { world.groups[static_cast<size_t>(rank)].reset(); });
  };
  run_all(plan, kWays[0], alone, RunOneByOne);
  run_all(overlapping, way, two, RunTwoInFlight);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto at = static_cast<size_t>(rank);
    ASSERT_EQ(alone[at].size(), static_cast<size_t>(runs));
    EXPECT_EQ(two[at], alone[at]) << "rank " << rank;
    EXPECT_NE(alone[at][0], alone[at][1]) << "nothing depends on the inputs";
  }
}

// One stream writes late and the other one reads early: all runs share the temporaries.
fbs::PlanT TwoStreams() {
  RankPlan plan({{"dp", 1}}, -1);
  plan.Streams({"compute", "beside"});
  plan.Events(2);
  constexpr int64_t kElements = 1024;
  const uint32_t x = plan.Buffer(0, "x", BufferKind::Input, kElements);
  const uint32_t sum = plan.Buffer(0, "sum", BufferKind::Temporary, kElements);
  const uint32_t y = plan.Buffer(0, "y", BufferKind::Output, kElements);
  const uint32_t z = plan.Buffer(0, "z", BufferKind::Output, kElements);
  plan.Add(0, 0, x, x, sum);
  plan.Signal(0, 0, 0);
  plan.Wait(0, 1, 0);
  for (int i = 0; i < 4; ++i) plan.Add(0, 1, sum, x, y);
  for (int i = 0; i < 4; ++i) plan.Add(0, 0, sum, sum, z);
  return plan.Finish();
}

TEST_P(Overlap, StreamsOfOneRank) { ExpectTheSameRuns(TwoStreams(), GetParam(), 20); }
TEST_P(Overlap, APipelineOfFourRanks) { ExpectTheSameRuns(testing::MakePipeline(2, 2, 3), GetParam(), 5); }
TEST_P(Overlap, ShardsOfFourRanks) { ExpectTheSameRuns(testing::MakeShardedLoop(2, 2, 2), GetParam(), 5); }

TEST_P(Overlap, TheFixtureWithMicrobatches) {
  fbs::PlanT plan = testing::MakePlanWithTwoRuns(testing::FixtureImage());
  const auto two = Open(plan, GetParam());
  // Products of cards round in their own way.
  const Way alone = GetParam().is_card() ? Way{"Card", "cuda:device=0,graphs=0", hal::StreamMode::kInline} : kWays[0];
  const auto one = Open(testing::MakePlan(testing::FixtureImage()), alone);
  ASSERT_NE(one, nullptr);
  ASSERT_NE(two, nullptr);
  const auto tokens_of = [](uint32_t run) {
    std::vector<int32_t> tokens(5);
    for (uint32_t i = 0; i < 5; ++i) tokens[i] = static_cast<int32_t>((run * 7 + i * 3) % 32);
    return tokens;
  };
  const auto write = [&](Session& session, uint32_t run) {
    for (uint32_t slot : {0u, 1u})
      WriteTensor(session, session.Input("step", "tokens", slot), tokens_of(2 * run + slot));
  };
  for (Session* session : {one.get(), two.get()}) ASSERT_EQ(session->Run("init"), absl::OkStatus());
  const int entry = *two->FindEntry("step");
  write(*two, 0);
  absl::StatusOr<RunTicket> before = two->Start(entry);
  for (uint32_t run = 0; run < 6; ++run) {
    write(*two, run + 1);
    const absl::StatusOr<RunTicket> next = two->Start(entry);
    ASSERT_TRUE(before.ok() && next.ok());
    ASSERT_EQ(two->Wait(*before), absl::OkStatus());
    write(*one, run);
    ASSERT_EQ(one->Run("step"), absl::OkStatus());
    EXPECT_EQ(ReadTensor<float>(*two, two->Output("step", "result")),
              ReadTensor<float>(*one, one->Output("step", "result")));
    before = next;
  }
  ASSERT_EQ(two->Wait(*before), absl::OkStatus());
}

// x, and then twice the output before.
fbs::PlanT Doubling(bool two_runs) {
  RankPlan plan({{"dp", 1}}, -1);
  plan.Streams({"compute", "beside"});
  plan.Events(1);
  const uint32_t x = plan.Buffer(0, "x", BufferKind::Input, 256);
  const uint32_t y = plan.Buffer(0, "y", BufferKind::Output, 256);
  const uint32_t z = plan.Buffer(0, "z", BufferKind::Output, 256);
  plan.Add(0, 0, x, x, y);
  plan.Add(0, 1, x, x, z);  // the copy has to be there for this stream too
  fbs::PlanT made = plan.Finish();
  if (two_runs) made = Overlapping(std::move(made));
  made.entries[0]->feeds.emplace_back(/*output=*/0, /*input=*/0);
  return made;
}

TEST_P(Overlap, OutputsFeedTheNextRunOnTheDevice) {
  for (const bool two_runs : {false, true}) {
    fbs::PlanT plan = Doubling(two_runs);
    const std::vector<uint8_t> bytes = BytesOf(plan);
    EXPECT_EQ(PlanChecker(testing::PlanIn(bytes)).check(), absl::OkStatus());
    const auto session = Open(plan, GetParam());
    ASSERT_NE(session, nullptr);
    const int entry = *session->FindEntry("step");
    EXPECT_THAT(std::string(session->Run(entry).message()), HasSubstr("input 'x', slot 0, was not written"));
    float expected = 3;
    WriteTensor<float>(*session, session->Input("step", "x"), std::vector<float>(256, expected));
    std::vector<RunTicket> tickets;
    for (int run = 0; run < 12; ++run) {
      if (run == 7) {  // the host's value counts
        for (; !tickets.empty(); tickets.erase(tickets.begin())) {
          ASSERT_EQ(session->Wait(tickets.front()), absl::OkStatus());
          expected *= 2;
        }
        expected = 5;
        WriteTensor<float>(*session, session->Input("step", "x"), std::vector<float>(256, expected));
      }
      const auto ticket = session->Start(entry);
      ASSERT_TRUE(ticket.ok()) << ticket.status();
      tickets.push_back(*ticket);
      if (tickets.size() < (two_runs ? 2u : 1u)) continue;
      ASSERT_EQ(session->Wait(tickets.front()), absl::OkStatus());
      tickets.erase(tickets.begin());
      expected *= 2;
      for (const char* output : {"y", "z"}) {
        EXPECT_EQ(ReadTensor<float>(*session, session->Output("step", output)), std::vector<float>(256, expected))
            << output << " of run " << run;
      }
    }
  }
}

TEST_P(Overlap, WhatTheDeviceMayUseIsRefused) {
  const auto session = Open(testing::MakePlanWithTwoRuns(testing::FixtureImage()), GetParam());
  ASSERT_NE(session, nullptr);
  const int step = *session->FindEntry("step"), init = *session->FindEntry("init");
  ASSERT_EQ(session->Run(init), absl::OkStatus());
  const auto write = [&] {
    for (uint32_t slot : {0u, 1u}) {
      const absl::Status written =
          session->WriteAll<int32_t>(*session->Input("step", "tokens", slot), std::vector<int32_t>(5, 1));
      if (!written.ok()) return written;
    }
    return absl::OkStatus();
  };
  ASSERT_EQ(write(), absl::OkStatus());
  const auto first = session->Start(step);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(std::string(session->Start(step).status().message()), HasSubstr("was not written since the last run"));
  ASSERT_EQ(write(), absl::OkStatus());
  const auto refused = [](const absl::Status& status, const char* why) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  };
  std::vector<float> one(1);
  refused(session->ReadAll(*session->State("steps"), absl::MakeSpan(one)), "buffer 'steps' cannot be read meanwhile");
  refused(session->WriteAll<float>(*session->State("steps"), one), "buffer 'steps' cannot be written meanwhile");
  refused(session->Run(init), "a run of entry 'step' is under way; wait for it before entry 'init' begins");
  const auto second = session->Start(step);
  ASSERT_TRUE(second.ok()) << second.status();
  refused(write(), "buffer 'tokens' cannot be written meanwhile");
  refused(session->Start(step).status(), "two runs are under way; wait for the first");
  ASSERT_EQ(session->Wait(*second), absl::OkStatus());  // in any order
  ASSERT_EQ(session->Wait(*first), absl::OkStatus());
  EXPECT_EQ(session->Wait(*first).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadTensor<float>(*session, session->State("steps"))[0], 2.0f);
}

// A rank that gives up while two runs are under way.
TEST_P(Overlap, ErrorsAreThoseOfTheRunAndOfAllThatFollow) {
  const fbs::PlanT plan = Overlapping(testing::MakeShardedLoop(2, 1, 1));
  testing::Ranks world = CreateRanks(2, testing::kLong);
  std::vector<std::vector<absl::Status>> statuses(2);
  std::promise<void> first_is_over;  // on rank 0, which may be behind
  OnEachRank(2, [&](int rank) {
    const auto at = static_cast<size_t>(rank);
    const auto session = Open(plan, GetParam(), world.groups[at].get());
    ASSERT_NE(session, nullptr);
    WriteInputs(*session, 1, 0);
    statuses[at].push_back(session->Run("step"));
    if (rank == 0) first_is_over.set_value();
    if (rank == 1) {
      first_is_over.get_future().wait();
      world.groups[at]->Abort(absl::DataLossError("rank 1 has had enough"));
      return;
    }
    std::vector<RunTicket> tickets;
    for (int run = 0; run < 2; ++run) {
      WriteInputs(*session, 1, run);
      const auto ticket = session->Start(*session->FindEntry("step"));
      ASSERT_TRUE(ticket.ok()) << ticket.status();
      tickets.push_back(*ticket);
    }
    for (const RunTicket ticket : tickets) statuses[at].push_back(session->Wait(ticket));
  });
  OnEachRank(2, [&](int rank) { world.groups[static_cast<size_t>(rank)].reset(); });
  EXPECT_EQ(statuses[1], std::vector<absl::Status>{absl::OkStatus()});
  ASSERT_EQ(statuses[0].size(), 3u);
  EXPECT_EQ(statuses[0][0], absl::OkStatus());
  EXPECT_FALSE(statuses[0][1].ok());
  EXPECT_THAT(std::string(statuses[0][1].message()), AllOf(HasSubstr("entry 'step', segment"), HasSubstr("command ")));
  EXPECT_FALSE(statuses[0][2].ok());
  EXPECT_THAT(std::string(statuses[0][2].message()), HasSubstr("entry 'step'"));
}

// A run that cannot be recorded is a note that names the command, and goes on as before.
TEST_P(Overlap, RunsThatCannotBeRecordedGoCommandByCommand) {
  if (std::string(GetParam().name) != "CudaGraphs" || std::getenv("BOWLINE_CUDA_STAND_IN") == nullptr) {
    GTEST_SKIP() << "only the stand-in can be told to refuse a command";
  }
  ASSERT_EQ(setenv("BOWLINE_STAND_IN_NOT_IN_GRAPHS", "fixture_add", 1), 0);
  for (const bool two : {false, true}) {
    std::vector<std::string> notes;
    const auto session = Open(two ? Overlapping(TwoStreams()) : TwoStreams(), GetParam(), nullptr,
                              [&](absl::string_view note) { notes.emplace_back(note); });
    ASSERT_NE(session, nullptr);
    const Outputs outputs = two ? RunTwoInFlight(*session, 1, 8) : RunOneByOne(*session, 1, 8);
    const auto expected = Open(TwoStreams(), kWays[0]);
    EXPECT_EQ(outputs, RunOneByOne(*expected, 1, 8));
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_THAT(notes[0],
                AllOf(HasSubstr("runs are not recorded, and go on command by command: entry 'step', segment "),
                      HasSubstr("command 0, launch of 'fixture_add', from "),
                      HasSubstr("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")));
  }
  unsetenv("BOWLINE_STAND_IN_NOT_IN_GRAPHS");
}

INSTANTIATE_TEST_SUITE_P(Ways, Overlap, ::testing::ValuesIn(kWays),
                         [](const ::testing::TestParamInfo<Way>& info) { return info.param.name; });

TEST(Overlap, TheNullDriverIsGivenTheOrderOfRuns) {
  const auto session = Open(Overlapping(TwoStreams()), {"Null", "null", hal::StreamMode::kInline});
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(RunTwoInFlight(*session, 1, 5).size(), 5u);
}

}  // namespace
}  // namespace bowline
