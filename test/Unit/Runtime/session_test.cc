#include "runtime/executor/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "runtime/drivers/host/host_memory.h"
#include "runtime/drivers/null/null_device.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Plan/fixture_image.h"
#include "test/Unit/Plan/plan_fixture.h"
#include "test/Unit/Runtime/allocation_counter.h"
#include "test/Unit/Runtime/arena_probe.h"
#include "test/Unit/Runtime/session_tensors.h"

namespace bowline {
namespace {

using testing::BytesOf;
using testing::FixtureImage;
using testing::MakePlan;
using testing::ReadTensor;
using testing::WriteTensor;

std::unique_ptr<Session> Open(fbs::PlanT plan, const SessionOptions& options = {}) {
  auto loaded = LoadedPlan::FromBytes(BytesOf(plan));
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  auto session = Session::Create(*std::move(loaded), options);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

void FillTokens(Session& session, std::mt19937& random) {
  for (uint32_t slot : {0u, 1u}) {
    std::vector<int32_t> tokens(5);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 32);
    WriteTensor(session, session.Input("step", "tokens", slot), tokens);
  }
}
void FillTokens(Session& session) {
  std::mt19937 random(7);
  FillTokens(session, random);
}

// result[t][o] = sum over slots of 2 * sum over c of table[tokens[t]][c] * weight[c][o], in f64.
std::vector<double> Expected(const Session& session) {
  const auto table = ReadTensor<float>(session, session.State("model.embed.weight"));
  const auto weight = ReadTensor<float>(session, session.BufferAt(testing::kWeight));
  std::vector<double> result(5 * 8, 0.0);
  for (uint32_t slot : {0u, 1u}) {
    const auto tokens = ReadTensor<int32_t>(session, session.Input("step", "tokens", slot));
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
  EXPECT_EQ(ReadTensor<float>(*session, session->State("steps"))[0], 0.0f);
  std::mt19937 random(TestSeed());
  for (int step = 1; step <= 3; ++step) {
    FillTokens(*session, random);
    ASSERT_TRUE(session->Run("step").ok());
    const std::vector<double> expected = Expected(*session);
    const auto result = ReadTensor<float>(*session, session->Output("step", "result"));
    ASSERT_EQ(result.size(), expected.size());
    for (size_t i = 0; i < result.size(); ++i) EXPECT_NEAR(result[i], expected[i], 1e-4 * (1 + std::fabs(expected[i])));
    EXPECT_EQ(ReadTensor<float>(*session, session->Output("step", "steps"))[0], static_cast<float>(step));
  }
}

TEST(Session, TakesTheFirstCodeThatTheDeviceRuns) {
  const auto with = [](const std::vector<std::string>& targets) {
    fbs::PlanT plan = MakePlan(FixtureImage());
    auto& codes = plan.images[0]->codes;
    const fbs::CodeT good = *codes[0];
    codes.clear();
    for (const std::string& target : targets) {
      codes.push_back(std::make_unique<fbs::CodeT>(good));
      codes.back()->target = target;
      if (target != "x86-64") codes.back()->data = {0};  // nobody may look at it
    }
    return Session::Create(*LoadedPlan::FromBytes(BytesOf(plan)));
  };
  const auto session = with({"x86-64-v99", "x86-64", "x86-64-v1"});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Run("init").ok());
  FillTokens(**session);
  EXPECT_TRUE((*session)->Run("step").ok());
  const absl::Status none = with({"x86-64-v99", "x86-64-v98"}).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.message()),
              ::testing::AllOf(::testing::HasSubstr("image 0"), ::testing::HasSubstr("'x86-64-v99'")));
}

TEST(Session, ReadsAndWritesEachMemorySpace) {
  fbs::PlanT plan = MakePlan(FixtureImage());
  const auto move = [&](uint32_t buffer, fbs::MemorySpace space) {
    fbs::BufferT& moved = *plan.buffers[buffer];
    moved.space = space;
    moved.offset = 128;
    plan.arenas.push_back(std::make_unique<fbs::ArenaT>());
    plan.arenas.back()->space = space;
    plan.arenas.back()->bytes = moved.offset + moved.bytes;
  };
  // The result goes to the host, and the table comes from the caller.
  move(testing::kResult, fbs::MemorySpace::PinnedHost);
  testing::CopyAt(plan, 1, 2, 0).engine = fbs::CopyEngine::ToHost;
  move(testing::kTable, fbs::MemorySpace::External);
  auto& init = plan.programs[0]->segments[0]->commands;
  init.erase(init.begin());
  std::mt19937 random(TestSeed());
  std::vector<float> table(32 * 16);
  for (float& value : table) value = static_cast<float>(random() % 64) / 8;
  for (const char* driver : {"cpu", "discrete:seed=2"}) {
    const bool reaches_host = driver == std::string("cpu");
    for (const size_t shift : {size_t{0}, size_t{8}, size_t{1}}) {
      const auto session = Open(plan, {.driver = driver});
      ASSERT_NE(session, nullptr);
      ASSERT_TRUE(session->Run("init").ok());
      FillTokens(*session);
      const absl::Status early = session->Run("step");
      EXPECT_EQ(early.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ(early.message(),
                "entry 'step': buffer 'table' of memory space External has no memory yet; load the weights first");
      auto owner = std::make_shared<std::vector<uint8_t>>(2048 + 128);
      const size_t place = 64 - reinterpret_cast<uintptr_t>(owner->data()) % 64 + shift;
      std::memcpy(owner->data() + place, table.data(), 2048);
      const absl::Span<const uint8_t> memory = absl::MakeConstSpan(*owner).subspan(place, 2048);
      const TensorRef state = *session->State("model.embed.weight");
      EXPECT_FALSE(session->Borrow(state, memory.first(2044), owner).ok());
      EXPECT_FALSE(*session->Borrow(*session->State("steps"), memory.first(4), owner));
      const auto borrowed = session->Borrow(state, memory, owner);
      ASSERT_TRUE(borrowed.ok()) << borrowed.status();
      // The buffer's alignment is 64.
      EXPECT_EQ(*borrowed, reaches_host && shift == 0);
      if (!*borrowed) ASSERT_TRUE(session->Write(state, memory).ok());
      EXPECT_EQ(session->external_bytes().in_place, *borrowed ? 2048u : 0u);
      EXPECT_EQ(session->external_bytes().copied, *borrowed ? 0u : 2048u);
      EXPECT_EQ(owner.use_count(), *borrowed ? 2 : 1);
      for (int run = 0; run < 2; ++run) {
        FillTokens(*session, random);
        const absl::Status ran = session->Run("step");
        ASSERT_TRUE(ran.ok()) << ran;
        const std::vector<double> expected = Expected(*session);
        const auto result = ReadTensor<float>(*session, session->Output("step", "result"));
        for (size_t i = 0; i < result.size(); ++i)
          EXPECT_NEAR(result[i], expected[i], 1e-4 * (1 + std::fabs(expected[i])));
        // A part that is written later leaves the rest as it was, and the caller's memory too.
        const float other = -3;
        ASSERT_TRUE(session->Write(state, {reinterpret_cast<const uint8_t*>(&other), 4}, 64).ok());
        EXPECT_EQ(ReadTensor<float>(*session, session->State("model.embed.weight"))[16], -3.0f);
        EXPECT_EQ(ReadTensor<float>(*session, session->State("model.embed.weight"))[17], table[17]);
        EXPECT_EQ(std::memcmp(memory.data(), table.data(), 2048), 0);
        EXPECT_EQ(session->external_bytes().copied, 2048u);
      }
    }
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
  for (const uint32_t state : a->states()) {
    EXPECT_EQ(ReadTensor<uint8_t>(*a, a->StateAt(state)), ReadTensor<uint8_t>(*b, b->StateAt(state)));
  }
  EXPECT_EQ(ReadTensor<uint8_t>(*a, a->Output("step", "result")), ReadTensor<uint8_t>(*b, b->Output("step", "result")));
}

TEST(Session, UsesExactlyTheMemoryThatThePlanStates) {
  const auto session = Open(MakePlan(FixtureImage()));
  EXPECT_EQ(session->arena().bytes(), session->plan().arena_bytes());
  const auto run = [](Session& measured) {
    EXPECT_TRUE(measured.Run("init").ok());
    FillTokens(measured);
    EXPECT_TRUE(measured.Run("step").ok());
  };
  fbs::PlanT guarded = MakePlan(FixtureImage());
  testing::AddGuards(guarded);
  const testing::ArenaUse use = testing::MeasureArena([&] { return Open(guarded); }, run);
  // Scratch memory is last, of which kernels use as many bytes as they need.
  EXPECT_GE(use.end, testing::EndOfBuffers(*session));
  EXPECT_LE(use.end, session->plan().arena_bytes());
  EXPECT_FALSE(use.outside.has_value()) << *use.outside;
}

TEST(Session, MeasurementSeesWhatIsWrittenBesidesBuffers) {
  fbs::PlanT plan = MakePlan(FixtureImage());
  const uint64_t end = plan.arena_bytes;
  testing::AddGuards(plan);
  const auto write_at = [&](uint64_t offset, uint8_t value) {
    return testing::MeasureArena(
        [&] { return Open(plan); },
        [=](Session& session) { EXPECT_TRUE(session.arena().Write(offset, {&value, 1}).ok()); });
  };
  for (const uint8_t value : {uint8_t{0}, uint8_t{7}, uint8_t{0xff}}) {
    const testing::ArenaUse use = write_at(end + 5, value);
    EXPECT_EQ(use.end, end + 6);
    EXPECT_EQ(use.outside, end + 5);
  }
}

TEST(Session, CommandsLeaveWhatLiesBehindTheArenaAlone) {
  const auto session = Open(MakePlan(FixtureImage()));
  auto* end = static_cast<uint8_t*>(PointerOf(session->arena().address())) + session->arena().bytes();
  const size_t rest = (4096 - session->arena().bytes() % 4096) % 4096;
  ASSERT_GT(rest, 0u);
  std::memset(end, 0xa5, rest);
  ASSERT_TRUE(session->Run("init").ok());
  FillTokens(*session);
  ASSERT_TRUE(session->Run("step").ok());
  for (size_t i = 0; i < rest; ++i) ASSERT_EQ(end[i], 0xa5) << i;
}

TEST(Session, FindsEntriesByTheirKindAndBucket) {
  fbs::PlanT plan = MakePlan(FixtureImage());
  plan.entries[1]->kind = fbs::EntryKind::Step;
  plan.entries[1]->bucket = 8;
  const auto session = Open(std::move(plan));
  EXPECT_EQ(session->NameOf(*session->FindEntry(fbs::EntryKind::Init)), "init");
  EXPECT_EQ(session->NameOf(*session->FindEntry(fbs::EntryKind::Step, 8)), "step");
  EXPECT_THAT(session->FindEntry(fbs::EntryKind::Step, 4).status().ToString(),
              ::testing::HasSubstr("has no entry of kind Step and bucket 4; it has 'init', 'step'"));
  EXPECT_EQ(session->FindEntry(fbs::EntryKind::TrainStep).status().code(), absl::StatusCode::kNotFound);
}

TEST(Session, RunsWithoutHeapAllocation) {
  if (!testing::CanCountHeapAllocations()) GTEST_SKIP() << "the sanitizer owns the allocator";
  for (const bool profile : {false, true}) {
    const auto session = Open(MakePlan(FixtureImage()), {.profile = profile});
    const int init = *session->FindEntry("init"), step = *session->FindEntry("step");
    const TensorRef tokens[] = {*session->Input("step", "tokens", 0), *session->Input("step", "tokens", 1)};
    const std::vector<int32_t> values = {3, 1, 4, 1, 5};
    float result[40];
    const auto run = [&] {
      bool ok = session->Run(init).ok();
      for (const TensorRef& tensor : tokens) ok &= session->WriteAll<int32_t>(tensor, values).ok();
      return ok && session->Run(step).ok() &&
             session->ReadAll(*session->Output("step", "result"), absl::MakeSpan(result)).ok();
    };
    ASSERT_TRUE(run());  // the thread pool starts
    const uint64_t before = testing::HeapAllocations();
    bool ok = true;
    for (int i = 0; i < 10; ++i) ok &= run();
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
  ASSERT_TRUE(session->Run("init").ok());
  for (int step = 0; step < 2; ++step) {
    FillTokens(*session);
    ASSERT_TRUE(session->Run("step").ok());
  }
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
  EXPECT_EQ(launches, 2 + 2u * 11);
  EXPECT_TRUE(Open(MakePlan(FixtureImage()))->Profile().empty());
}

class SessionWithPrepare : public ::testing::Test {
 protected:
  void SetUp() override {
    session_ = Open(testing::MakePlanWithPrepare(FixtureImage()), {.profile = true});
    ASSERT_TRUE(session_->Run("init").ok());
  }

  absl::Status RunStep() {
    FillTokens(*session_, random_);
    ++steps_;
    return session_->Run("step");
  }

  // Runs `step`, which has to give the result of the table as it is, after so many runs of `pack` in all.
  void Step(uint64_t prepared) {
    ASSERT_TRUE(RunStep().ok());
    EXPECT_EQ(Prepared(), prepared);
    const auto result = ReadTensor<float>(*session_, session_->Output("step", "result"));
    const std::vector<double> expected = Expected(*session_);  // reading states changes nothing
    for (size_t i = 0; i < result.size(); ++i) ASSERT_NEAR(result[i], expected[i], 1e-4 * (1 + std::fabs(expected[i])));
  }

  // `pack` and each step copy once.
  uint64_t Prepared() const {
    for (const ProfileRow& row : session_->Profile()) {
      if (row.name == "copy") return row.launches - steps_;
    }
    return 0;
  }

  std::unique_ptr<Session> session_;
  std::mt19937 random_{TestSeed()};
  uint64_t steps_ = 0;
};

TEST_F(SessionWithPrepare, RunsItOnceForAllCalls) {
  EXPECT_EQ(Prepared(), 0u);
  for (int i = 0; i < 5; ++i) Step(1);
  EXPECT_EQ(Prepared(), 1u);
  ASSERT_TRUE(session_->Prepare().ok());
  EXPECT_EQ(Prepared(), 1u);
  ASSERT_TRUE(session_->Run("pack").ok());  // who asks for it gets it
  EXPECT_EQ(Prepared(), 2u);
}

TEST_F(SessionWithPrepare, RunsItAgainWhenParametersMayHaveChanged) {
  Step(1);
  std::vector<float> table = ReadTensor<float>(*session_, session_->State("model.embed.weight"));
  table[3] = 7;
  WriteTensor(*session_, session_->State("model.embed.weight"), table);
  Step(2);
  for (float& value : table) value += 1;
  WriteTensor(*session_, session_->StateAt(0), table);
  Step(3);
  const float one = -2;
  ASSERT_TRUE(session_
                  ->Write(session_->BufferAt(testing::kTable), {reinterpret_cast<const uint8_t*>(&one), sizeof(one)},
                          40 * sizeof(float))
                  .ok());
  Step(4);
  ASSERT_TRUE(session_->arena().Write(4, {reinterpret_cast<const uint8_t*>(&one), sizeof(one)}).ok());
  Step(5);
  ASSERT_TRUE(session_->Run("init").ok());
  Step(6);
  Step(6);  // `step` writes a state that `pack` does not read
}

TEST(Session, PreparesForAnEntryThatOnlyReturnsWhatIsPrepared) {
  fbs::PlanT plan = testing::MakePlanWithPrepare(FixtureImage());
  auto show = std::make_unique<fbs::EntryT>();
  show->name = "show";
  show->program = static_cast<uint32_t>(plan.programs.size());
  show->outputs.push_back(std::make_unique<fbs::PortT>());
  show->outputs[0]->name = "copied";
  show->outputs[0]->buffer = testing::kCopied;
  plan.programs.push_back(std::make_unique<fbs::ProgramT>());
  plan.programs.back()->name = "show";
  plan.entries.push_back(std::move(show));
  const std::unique_ptr<Session> session = Open(std::move(plan));
  ASSERT_TRUE(session->Run("init").ok());
  ASSERT_TRUE(session->Run("show").ok());
  EXPECT_EQ(ReadTensor<float>(*session, session->Output("show", "copied")),
            ReadTensor<float>(*session, session->State("model.embed.weight")));
}

TEST(Session, TakesTheFirstCodeWhoseFormatTheDeviceKnows) {
  fbs::PlanT plan = MakePlan(FixtureImage());
  auto& codes = plan.images[0]->codes;
  codes.push_back(std::make_unique<fbs::CodeT>(*codes[0]));
  codes[0]->format = "ptx";
  codes[0]->hash = nullptr;
  EXPECT_TRUE(Open(std::move(plan))->Run("init").ok());
}

TEST_F(SessionWithPrepare, PreparesAheadOfTheFirstCall) {
  ASSERT_TRUE(session_->Prepare().ok());
  EXPECT_EQ(Prepared(), 1u);
  Step(1);
}

TEST(Session, RefusesToRunOnInputsThatWereNotWrittenSinceTheLastRun) {
  const auto session = Open(MakePlan(FixtureImage()));
  ASSERT_TRUE(session->Run("init").ok());
  const auto expect_missing = [&](const char* slot) {
    const absl::Status status = session->Run("step");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                ::testing::HasSubstr(absl::StrCat("entry 'step': input 'tokens', slot ", slot, ", was not written")));
    EXPECT_EQ(ReadTensor<float>(*session, session->State("steps"))[0], 0.0f) << "something ran";
  };
  expect_missing("0");
  WriteTensor<int32_t>(*session, session->Input("step", "tokens", 0), {1, 2, 3, 4, 5});
  expect_missing("1");
  WriteTensor<int32_t>(*session, session->Input("step", "tokens", 1), {1, 2, 3, 4, 5});
  ASSERT_TRUE(session->Run("init").ok());  // may use the bytes of the inputs
  expect_missing("0");
  FillTokens(*session);
  EXPECT_TRUE(session->Run("step").ok());
}

TEST(Session, TransfersStayInsideOfTheirTensor) {
  const auto session = Open(MakePlan(FixtureImage()));
  const TensorRef table = *session->State("model.embed.weight"), tokens = *session->Input("step", "tokens");
  std::vector<uint8_t> bytes(table.bytes + 1);
  for (const auto& [size, offset] :
       {std::pair<size_t, uint64_t>{table.bytes + 1, 0}, {1, table.bytes}, {2, ~uint64_t{0}}}) {
    EXPECT_EQ(session->Write(table, {bytes.data(), size}, offset).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(session->Read(table, {bytes.data(), size}, offset).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(session->Write(table, {bytes.data(), 8}, table.bytes - 8).ok());
  EXPECT_THAT(std::string(session->Write(tokens, {bytes.data(), 4}).message()),
              ::testing::HasSubstr("buffer 'tokens' is an input, which is written as a whole: 20 bytes, not 4"));
}

TEST(Session, NothingIsPreparedWhereThereIsNoSuchEntry) {
  const auto session = Open(MakePlan(FixtureImage()), {.profile = true});
  ASSERT_TRUE(session->Prepare().ok());
  EXPECT_TRUE(session->Profile().empty());
}

TEST(Session, TheNullDriverIsGivenEveryCommand) {
  const auto session = Open(MakePlan(), {.driver = "null"});
  FillTokens(*session);
  ASSERT_TRUE(session->Run("step").ok());
  const NullCounts counts = CountsOf(session->device());
  EXPECT_EQ(counts.launches, 1u + 2 * 4 + 1);
  EXPECT_EQ(counts.copies, 1u);
  EXPECT_EQ(counts.copied_bytes, 160u);
  EXPECT_EQ(counts.synchronizations, 1u);
}

TEST(Session, DescribesItsTensors) {
  const auto session = Open(MakePlan(), {.driver = "null"});
  const TensorRef tokens = *session->Input("step", "tokens", 1);
  EXPECT_EQ(tokens.dtype, fbs::DType::I32);
  EXPECT_EQ(tokens.bytes, 20u);
  EXPECT_EQ(tokens.shape, (std::vector<int64_t>{5}));
  EXPECT_EQ(tokens.buffer, testing::kTokens);
  EXPECT_EQ(tokens.slot, 1u);
  EXPECT_EQ(session->State("steps")->buffer, session->StateAt(1).buffer);
}

}  // namespace
}  // namespace bowline
