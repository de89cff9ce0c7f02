#include "runtime/executor/session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "runtime/drivers/null/null_device.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Plan/fixture_image.h"
#include "test/Unit/Plan/plan_fixture.h"
#include "test/Unit/Runtime/allocation_counter.h"
#include "test/Unit/Runtime/arena_probe.h"

namespace bowline {
namespace {

using testing::BytesOf;
using testing::FixtureImage;
using testing::MakePlan;

std::unique_ptr<Session> Open(fbs::PlanT plan, const SessionOptions& options = {}) {
  auto loaded = LoadedPlan::FromBytes(BytesOf(plan));
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  auto session = Session::Create(*std::move(loaded), options);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

void FillTokens(Session& session, std::mt19937& random) {
  for (uint32_t slot : {0u, 1u}) {
    for (int32_t& token : session.Input("step", "tokens", slot)->As<int32_t>()) {
      token = static_cast<int32_t>(random() % 32);
    }
  }
}

// result[t][o] = sum over slots of 2 * sum over c of table[tokens[t]][c] * weight[c][o], in f64.
std::vector<double> Expected(const Session& session) {
  const auto table = session.State("model.embed.weight")->As<float>();
  const auto weight = session.BufferAt(testing::kWeight).As<float>();
  std::vector<double> result(5 * 8, 0.0);
  for (uint32_t slot : {0u, 1u}) {
    const auto tokens = session.Input("step", "tokens", slot)->As<int32_t>();
    for (size_t t = 0; t < 5; ++t) {
      for (size_t o = 0; o < 8; ++o) {
        for (size_t c = 0; c < 16; ++c) {
          result[t * 8 + o] += 2.0 * double{table[static_cast<size_t>(tokens[t]) * 16 + c]} * double{weight[c * 8 + o]};
        }
      }
    }
  }
  return result;
}

TEST(Session, ComputesWhatThePlanSays) {
  const auto session = Open(MakePlan(FixtureImage()));
  ASSERT_TRUE(session->Run("init").ok());
  EXPECT_EQ(session->State("steps")->As<float>()[0], 0.0f);
  std::mt19937 random(TestSeed());
  for (int step = 1; step <= 3; ++step) {
    FillTokens(*session, random);
    ASSERT_TRUE(session->Run("step").ok());
    const std::vector<double> expected = Expected(*session);
    const auto result = session->Output("step", "result")->As<float>();
    ASSERT_EQ(result.size(), expected.size());
    for (size_t i = 0; i < result.size(); ++i) EXPECT_NEAR(result[i], expected[i], 1e-4 * (1 + std::fabs(expected[i])));
    EXPECT_EQ(session->Output("step", "steps")->As<float>()[0], static_cast<float>(step));
  }
}

TEST(Session, TwoRunsAreBitIdentical) {
  const auto a = Open(MakePlan(FixtureImage())), b = Open(MakePlan(FixtureImage()));
  for (Session* session : {a.get(), b.get()}) {
    std::mt19937 random(5);
    ASSERT_TRUE(session->Run("init").ok());
    FillTokens(*session, random);
    ASSERT_TRUE(session->Run("step").ok());
  }
  EXPECT_EQ(std::memcmp(a->arena().address(), b->arena().address(), a->arena().bytes()), 0);
}

TEST(Session, UsesExactlyTheMemoryThatThePlanStates) {
  const auto session = Open(MakePlan(FixtureImage()));
  EXPECT_EQ(session->arena().bytes(), session->plan().arena_bytes());
  const auto run = [](Session& measured) {
    std::mt19937 random(TestSeed());
    FillTokens(measured, random);
    EXPECT_TRUE(measured.Run("init").ok());
    EXPECT_TRUE(measured.Run("step").ok());
  };
  const testing::ArenaUse use = testing::MeasureArena([] { return Open(MakePlan(FixtureImage())); }, run);
  // Scratch memory is last, of which kernels use what they need.
  EXPECT_GE(use.end, testing::EndOfBuffers(*session));
  EXPECT_FALSE(use.outside.has_value()) << *use.outside;
}

TEST(Session, MeasurementSeesWhatIsWrittenBesidesBuffers) {
  fbs::PlanT plan = MakePlan(FixtureImage());
  const uint64_t end = plan.arena_bytes;
  plan.arena_bytes += 4096;
  const auto write_at = [&](uint64_t offset, uint8_t value) {
    return testing::MeasureArena([&] { return Open(plan); },
                                 [=](Session& session) { session.arena().address()[offset] = value; });
  };
  for (const uint8_t value : {uint8_t{0}, uint8_t{7}, uint8_t{0xff}}) {
    const testing::ArenaUse use = write_at(end + 5, value);
    EXPECT_EQ(use.end, end + 6);
    EXPECT_EQ(use.outside, end + 5);
  }
}

TEST(Session, CommandsLeaveWhatLiesBehindTheArenaAlone) {
  const auto session = Open(MakePlan(FixtureImage()));
  uint8_t* end = session->arena().address() + session->arena().bytes();
  const size_t rest = (4096 - session->arena().bytes() % 4096) % 4096;
  ASSERT_GT(rest, 0u);
  std::memset(end, 0xa5, rest);
  ASSERT_TRUE(session->Run("init").ok());
  ASSERT_TRUE(session->Run("step").ok());
  for (size_t i = 0; i < rest; ++i) ASSERT_EQ(end[i], 0xa5) << i;
}

TEST(Session, RunsWithoutHeapAllocation) {
  if (!testing::CanCountHeapAllocations()) GTEST_SKIP() << "the sanitizer owns the allocator";
  for (const bool profile : {false, true}) {
    const auto session = Open(MakePlan(FixtureImage()), {.profile = profile});
    const int init = *session->FindEntry("init"), step = *session->FindEntry("step");
    ASSERT_TRUE(session->Run(init).ok());
    ASSERT_TRUE(session->Run(step).ok());  // the thread pool starts
    const uint64_t before = testing::HeapAllocations();
    bool ok = true;
    for (int i = 0; i < 10; ++i) ok &= session->Run(step).ok() && session->Run(init).ok();
    EXPECT_EQ(testing::HeapAllocations() - before, 0u);
    EXPECT_TRUE(ok);
  }
}

TEST(AllocationCounter, Counts) {
  if (!testing::CanCountHeapAllocations()) GTEST_SKIP() << "the sanitizer owns the allocator";
  const uint64_t before = testing::HeapAllocations();
  std::vector<std::unique_ptr<int>> kept;
  for (int i = 0; i < 10; ++i) kept.push_back(std::make_unique<int>(i));
  void* aligned = nullptr;
  ASSERT_EQ(posix_memalign(&aligned, 64, 100), 0);
  std::free(aligned);
  std::free(std::aligned_alloc(64, 128));
  EXPECT_GE(testing::HeapAllocations() - before, 12u);
}

TEST(Session, ProfilesByKernel) {
  const auto session = Open(MakePlan(FixtureImage()), {.profile = true});
  EXPECT_TRUE(session->Profile().empty());
  ASSERT_TRUE(session->Run("step").ok());
  ASSERT_TRUE(session->Run("step").ok());
  uint64_t adds = 0, copies = 0, launches = 0;
  double last = INFINITY;
  for (const ProfileRow& row : session->Profile()) {
    EXPECT_LE(row.seconds, last);
    EXPECT_GT(row.seconds, 0);
    last = row.seconds;
    if (row.name == "fixture_add") {
      adds += row.launches;
      EXPECT_TRUE(row.generated);
      EXPECT_EQ(row.flops, 800);
      EXPECT_EQ(row.bytes_moved, 1600);
    }
    if (row.name == "copy") copies += row.launches;
    launches += row.launches;
  }
  EXPECT_EQ(adds, 8u);
  EXPECT_EQ(copies, 2u);
  EXPECT_EQ(launches, 2u * 11);
  EXPECT_TRUE(Open(MakePlan(FixtureImage()))->Profile().empty());
}

class SessionWithPrepare : public ::testing::Test {
 protected:
  void SetUp() override {
    session_ = Open(testing::MakePlanWithPrepare(FixtureImage()), {.profile = true});
    ASSERT_TRUE(session_->Run("init").ok());
    std::mt19937 random(TestSeed());
    FillTokens(*session_, random);
  }

  // Runs `step`, which has to give the result of the table as it is, after so many runs of `prepare` in all.
  void Step(uint64_t prepared) {
    ASSERT_TRUE(session_->Run("step").ok());
    ++steps_;
    EXPECT_EQ(Prepared(), prepared);
    const auto result = session_->Output("step", "result")->As<float>();
    const std::vector<double> expected = Expected(*session_);  // looks at states
    for (size_t i = 0; i < result.size(); ++i) ASSERT_NEAR(result[i], expected[i], 1e-4 * (1 + std::fabs(expected[i])));
  }

  // `prepare` and each step copy once.
  uint64_t Prepared() const {
    for (const ProfileRow& row : session_->Profile()) {
      if (row.name == "copy") return row.launches - steps_;
    }
    return 0;
  }

  std::unique_ptr<Session> session_;
  uint64_t steps_ = 0;
};

TEST_F(SessionWithPrepare, RunsItOnceForAllCalls) {
  EXPECT_EQ(Prepared(), 0u);
  const int step = *session_->FindEntry("step");
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(session_->Run(step).ok());
    ++steps_;
  }
  EXPECT_EQ(Prepared(), 1u);
  ASSERT_TRUE(session_->Prepare().ok());
  EXPECT_EQ(Prepared(), 1u);
  ASSERT_TRUE(session_->Run("prepare").ok());  // who asks for it gets it
  EXPECT_EQ(Prepared(), 2u);
}

TEST_F(SessionWithPrepare, RunsItAgainWhenParametersMayHaveChanged) {
  Step(1);
  session_->State("model.embed.weight")->As<float>()[3] = 7;
  Step(2);
  for (float& value : session_->StateAt(0).As<float>()) value += 1;
  Step(3);
  session_->BufferAt(testing::kTable).As<float>()[40] = -2;
  Step(4);
  session_->arena().address()[4] ^= 1;
  Step(5);
  ASSERT_TRUE(session_->Run("init").ok());
  Step(6);
  ASSERT_TRUE(session_->Run("step").ok());  // writes a state that `prepare` does not read
  ++steps_;
  EXPECT_EQ(Prepared(), 7u) << "Step looks at states, which might have been to write them";
  ASSERT_TRUE(session_->Run("step").ok());
  ++steps_;
  EXPECT_EQ(Prepared(), 7u);
}

TEST_F(SessionWithPrepare, PreparesAheadOfTheFirstCall) {
  ASSERT_TRUE(session_->Prepare().ok());
  EXPECT_EQ(Prepared(), 1u);
  ASSERT_TRUE(session_->Run("step").ok());
  ++steps_;
  EXPECT_EQ(Prepared(), 1u);
}

TEST(Session, NothingIsPreparedWhereThereIsNoSuchEntry) {
  const auto session = Open(MakePlan(FixtureImage()), {.profile = true});
  ASSERT_TRUE(session->Prepare().ok());
  EXPECT_TRUE(session->Profile().empty());
}

TEST(Session, TheNullDriverIsGivenEveryCommand) {
  const auto session = Open(MakePlan(), {.driver = "null"});
  ASSERT_TRUE(session->Run("step").ok());
  const NullCounts counts = CountsOf(session->device());
  EXPECT_EQ(counts.launches, 1u + 2 * 4 + 1);
  EXPECT_EQ(counts.copies, 1u);
  EXPECT_EQ(counts.copied_bytes, 160u);
  EXPECT_EQ(counts.synchronizations, 1u);
}

TEST(Session, DescribesItsTensors) {
  const auto session = Open(MakePlan(), {.driver = "null"});
  const TensorView tokens = *session->Input("step", "tokens", 1);
  EXPECT_EQ(tokens.dtype, fbs::DType::I32);
  EXPECT_EQ(tokens.bytes, 20u);
  EXPECT_EQ(tokens.shape, (std::vector<int64_t>{5}));
  EXPECT_EQ(static_cast<uint8_t*>(tokens.data) - static_cast<uint8_t*>(session->Input("step", "tokens")->data), 64);
  EXPECT_EQ(session->State("steps")->data, session->StateAt(1).data);
}

}  // namespace
}  // namespace bowline
