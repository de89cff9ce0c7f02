// States of a plan with stages, as its ranks save and load them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "runtime/base/safetensors.h"
#include "runtime/plan/plan_writer.h"
#include "runtime/train/checkpoint/parallel_save.h"
#include "runtime/train/checkpoint/save_checkpoint.h"
#include "runtime/train/model_state.h"
#include "runtime/train/weights.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Runtime/comm_fixture.h"
#include "test/Unit/Runtime/session_tensors.h"
#include "test/Unit/Train/plan_builder.h"

namespace bowline {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::ReadTensor;
using testing::World;
using testing::WriteTensor;

// pp=2, tp=2. Stage 0 has "e" [5, 3] in halves of the rows; stage 1 mirrors it, whole, and has "o" [4]; both count.
std::vector<uint8_t> StagedPlan() {
  PlanBuilder builder("staged", 0, 1);
  const auto state = [&](const std::string& name, const std::string& key, fbs::StateFlag flags, fbs::DType dtype,
                         const std::vector<int64_t>& shape, uint16_t stage) {
    const uint32_t buffer = builder.State(name, flags, dtype, shape);
    builder.plan().states.back()->key = key;
    builder.plan().buffers[buffer]->role = stage;
    return buffer;
  };
  const uint32_t e = state("e", "e", kParameterFlags, fbs::DType::F32, {3, 3}, 0);
  state("step.0", "step", kStepFlags, fbs::DType::I32, {}, 0);
  state("e.1", "e", kMirrorFlags, fbs::DType::F32, {5, 3}, 1);
  state("o", "o", kParameterFlags, fbs::DType::F32, {4}, 1);
  state("step.1", "step", kStepFlags, fbs::DType::I32, {}, 1);
  for (const char* stage : {"0", "1"}) {
    builder.BeginProgram(std::string("nothing.") + stage);
    builder.BeginSegment("nothing");
    builder.Call();
    builder.plan().programs.back()->role = stage[0] - '0';
    builder.Entry(fbs::EntryKind::Generate, {}, {});
  }
  fbs::PlanT plan = builder.Take();
  for (const char* name : {"pp", "tp"}) {
    plan.mesh.push_back(std::make_unique<fbs::AxisT>());
    plan.mesh.back()->name = name;
    plan.mesh.back()->size = 2;
    plan.roles.push_back(std::make_unique<fbs::RoleT>());
    plan.roles.back()->name = std::string("stage.") + name;
    plan.roles.back()->arena_bytes = plan.arena_bytes;
  }
  auto layout = std::make_unique<fbs::LayoutT>();
  layout->global_shape = {5, 3};
  for (const std::vector<uint8_t>& axes : {std::vector<uint8_t>{1}, {}}) {
    layout->dim_shardings.push_back(std::make_unique<fbs::DimShardingT>());
    layout->dim_shardings.back()->axes = axes;
  }
  plan.buffers[e]->layout = std::move(layout);
  const auto bytes = WritePlan(plan);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? std::vector<uint8_t>(bytes->data(), bytes->data() + bytes->size()) : std::vector<uint8_t>();
}

// e[i] = i, o[i] = 100 + i.
std::vector<float> ValuesFrom(float first, size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

class RankStatesTest : public ::testing::Test {
 protected:
  // Calls `body` with the session of each rank.
  template <typename Body>
  void OnSessions(Body body) {
    const std::vector<uint8_t> bytes = StagedPlan();
    World world(4);
    const auto statuses = world.Run([&](int rank) -> absl::Status {
      BOWLINE_ASSIGN_OR_RETURN(LoadedPlan plan, LoadedPlan::FromBytes({bytes.data(), bytes.size()}));
      SessionOptions options;
      options.group = &world.group(rank);
      options.prove = false;  // made by hand
      BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(std::move(plan), options));
      BOWLINE_ASSIGN_OR_RETURN(Agreement agreement, Agreement::Create(&world.group(rank)));
      return body(*session, agreement);
    });
    for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
  }

  // Writes the expected values of e, its mirror, `o` and the counter.
  static void Fill(Session& session) {
    const std::vector<float> e = ValuesFrom(0, 15), o = ValuesFrom(100, 4);
    if (session.role() == 0) {
      const size_t first = session.rank() == 0 ? 0 : 9;
      std::vector<float> part(9, 77.0f);  // padding
      std::copy(e.begin() + first, e.begin() + std::min<size_t>(first + 9, 15), part.begin());
      WriteTensor(session, session.State("e"), part);
    } else {
      WriteTensor(session, session.State("e"), e);
      WriteTensor(session, session.State("o"), o);
    }
    WriteTensor<int32_t>(session, session.State("step"), {6});
  }

  static void ExpectFilled(const Session& session, int32_t step) {
    const std::vector<float> e = ValuesFrom(0, 15);
    const auto part = ReadTensor<float>(session, session.State("e"));
    if (session.rank() == 0) EXPECT_THAT(part, ElementsAreArray(ValuesFrom(0, 9)));
    if (session.rank() == 1) EXPECT_THAT(part, ElementsAre(9, 10, 11, 12, 13, 14, 0, 0, 0));
    if (session.role() == 1) {
      EXPECT_THAT(part, ElementsAreArray(e));
      EXPECT_THAT(ReadTensor<float>(session, session.State("o")), ElementsAre(100, 101, 102, 103));
    }
    EXPECT_THAT(ReadTensor<int32_t>(session, session.State("step")), ElementsAre(step));
  }

  void Save() {
    OnSessions([&](Session& session, Agreement& agreement) {
      Fill(session);
      return SaveCheckpointOfRanks(directory_.path(), {{.step = 6}, StateTensors(session), "{}", RankOf(session)},
                                   agreement)
          .status();
    });
  }

  TempDirectory directory_;
};

TEST_F(RankStatesTest, StagesLoadWhatTheySaved) {
  Save();
  OnSessions([&](Session& session, Agreement&) -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(directory_.path()));
    BOWLINE_RETURN_IF_ERROR(checkpoint.Load(StateTensors(session), RankOf(session)));
    ExpectFilled(session, 6);
    return absl::OkStatus();
  });
}

TEST_F(RankStatesTest, OneRankHasEachTensorOnce) {
  Save();
  const absl::Status exported = ExportCheckpoint(*Checkpoint::Open(directory_.path()), directory_ / "out", true);
  ASSERT_TRUE(exported.ok()) << exported;
  std::vector<float> e(15), o(4);
  int32_t step = 0;
  const std::vector<CheckpointTensor> tensors = {
      {"e", CheckpointRole::kParameter, ElementType::kF32, {5, 3}, HostTensorMemory(e.data())},
      {"o", CheckpointRole::kParameter, ElementType::kF32, {4}, HostTensorMemory(o.data())},
      {"step", CheckpointRole::kOptimizer, ElementType::kI32, {}, HostTensorMemory(&step)}};
  for (const std::string& path : {directory_.path(), directory_ / "out"}) {
    e.assign(15, -1);
    const absl::Status loaded = Checkpoint::Open(path)->Load(tensors);
    ASSERT_TRUE(loaded.ok()) << loaded;
    EXPECT_EQ(e, ValuesFrom(0, 15));
    EXPECT_EQ(o, ValuesFrom(100, 4));
    EXPECT_EQ(step, 6);
  }
  // Weights, from either form, go to mirrors too.
  for (const std::string& path : {directory_.path(), directory_ / "out"}) {
    OnSessions([&](Session& session, Agreement&) -> absl::Status {
      WriteTensor<int32_t>(session, session.State("step"), {0});
      BOWLINE_ASSIGN_OR_RETURN(const LoadedWeights weights, LoadWeights(session, path));
      EXPECT_EQ(weights.tensors, 2);
      EXPECT_TRUE(weights.unused.empty());
      ExpectFilled(session, 0);
      return absl::OkStatus();
    });
  }
}

TEST_F(RankStatesTest, EveryRankNoticesWhatDoesNotFit) {
  std::vector<float> e(15);
  ASSERT_TRUE(
      SaveCheckpoint(directory_.path(), {.step = 1},
                     {{{"e", CheckpointRole::kParameter, ElementType::kF32, {5, 3}, HostTensorMemory(e.data())}}}, "")
          .ok());
  OnSessions([&](Session& session, Agreement&) -> absl::Status {
    const std::vector<float> before(session.role() == 0 ? 9 : 15, 3.0f);
    WriteTensor(session, session.State("e"), before);
    const absl::Status loaded = Checkpoint::Open(directory_.path())->Load(StateTensors(session), RankOf(session));
    EXPECT_THAT(std::string(loaded.message()), HasSubstr("tensor 'o' is missing"));
    EXPECT_THAT(std::string(LoadWeights(session, directory_.path()).status().message()),
                HasSubstr("'o' is missing; the plan needs F32 [4]"));
    EXPECT_EQ(ReadTensor<float>(session, session.State("e")), before);
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace bowline
