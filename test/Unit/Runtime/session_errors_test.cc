#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "runtime/executor/session.h"
#include "runtime/plan/view/plan_view.h"
#include "test/Unit/Plan/fixture_image.h"
#include "test/Unit/Plan/plan_fixture.h"
#include "test/Unit/Runtime/session_tensors.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using testing::BytesOf;
using testing::FixtureImage;
using ::testing::HasSubstr;
using testing::MakePlan;
using ::testing::Not;
using testing::WriteTensor;

absl::StatusOr<std::unique_ptr<Session>> TryOpen(const std::function<void(fbs::PlanT&)>& change,
                                                 const SessionOptions& options = {}) {
  fbs::PlanT plan = MakePlan(FixtureImage());
  change(plan);
  BOWLINE_ASSIGN_OR_RETURN(LoadedPlan loaded, LoadedPlan::FromBytes(BytesOf(plan), "x.plan"));
  return Session::Create(std::move(loaded), options);
}

void ExpectRefused(const std::function<void(fbs::PlanT&)>& change, absl::StatusCode code, const char* message,
                   const SessionOptions& options = {}) {
  const auto session = TryOpen(change, options);
  EXPECT_EQ(session.status().code(), code) << session.status();
  EXPECT_THAT(std::string(session.status().message()), HasSubstr(message));
}

void Nothing(fbs::PlanT&) {}

TEST(SessionErrors, OtherMachines) {
  const auto code = absl::StatusCode::kFailedPrecondition;
  ExpectRefused([](fbs::PlanT& p) { p.target->device = "cuda"; }, code,
                "'x.plan': the plan was compiled for the device 'cuda', which the driver 'cpu' is not",
                {.driver = "cpu", .prove = false});
  ExpectRefused([](fbs::PlanT& p) { p.target->arch = "vax"; }, code, "compiled for architecture 'vax'");
  ExpectRefused([](fbs::PlanT& p) { p.target->cpu = "x86-64-v7"; }, code, "compiled for CPU 'x86-64-v7'");
  ExpectRefused([](fbs::PlanT& p) { p.mesh[0]->size = 4; }, code, "the plan is for 4 ranks (dp=4), but 1 run it",
                {.prove = false});
  ExpectRefused([](fbs::PlanT& p) { p.mesh[0]->size = 4; }, code, "and carries no proof");
  ExpectRefused(Nothing, code, "compiled for 2 threads, not 5", {.threads = 5});
}

TEST(SessionErrors, UnknownDriver) {
  ExpectRefused(Nothing, absl::StatusCode::kNotFound,
                "no driver 'tpu'; this build has cpu, null, and libbowline_tpu.so", {.driver = "tpu"});
  ExpectRefused([](fbs::PlanT& p) { p.target->device = "abacus"; }, absl::StatusCode::kNotFound, "no driver 'abacus'");
  ExpectRefused(Nothing, absl::StatusCode::kInvalidArgument, "the driver 'cpu' has no setting 'seed'; it has teams",
                {.driver = "cpu:seed=1"});
}

TEST(SessionErrors, Kernels) {
  const auto rename = [](fbs::PlanT& p) { p.kernels[testing::kGather]->name = "gather"; };
  ExpectRefused(rename, absl::StatusCode::kInvalidArgument,
                "the proof of signatures fails: kernel 3: there is no kernel 'gather'");
  ExpectRefused(rename, absl::StatusCode::kNotFound, "kernel 3: there is no kernel 'gather'", {.prove = false});
  ExpectRefused([](fbs::PlanT& p) { p.kernels[testing::kMatmul]->attributes.pop_back(); },
                absl::StatusCode::kInvalidArgument, "kernel 4: kernel 'matmul'");
  ExpectRefused([](fbs::PlanT& p) { p.kernels[testing::kAdd]->name = "fixture_sub"; }, absl::StatusCode::kNotFound,
                "kernel 5: the plan's image has no symbol 'fixture_sub'");
  ExpectRefused(
      [](fbs::PlanT& p) {
        p.kernels[testing::kAdd]->name = "matmul";
        p.kernels[testing::kAdd]->origin = fbs::KernelOrigin::Registered;
        p.kernels[testing::kAdd]->geometry.Reset();
      },
      absl::StatusCode::kInvalidArgument, "which this build's kernel does not allow", {.prove = false});
  ExpectRefused([](fbs::PlanT& p) { p.images[0]->codes[0]->data.resize(200); }, absl::StatusCode::kInvalidArgument,
                "image 0: an image of the plan does not load");
}

TEST(SessionErrors, CommunicatorsOfOneRank) {
  ExpectRefused(
      [](fbs::PlanT& p) {
        p.communicators.push_back(std::make_unique<fbs::CommunicatorT>());
        p.communicators.back()->name = "dp";
      },
      absl::StatusCode::kFailedPrecondition, "the plan is for one rank and has communicator 'dp', but nobody");
}

TEST(SessionErrors, PlansThatAreNotSound) {
  const auto drop_the_gather = [](fbs::PlanT& p) {
    auto& commands = p.programs[1]->segments[1]->commands;
    commands.erase(commands.begin());
  };
  ExpectRefused(drop_the_gather, absl::StatusCode::kInvalidArgument,
                "'x.plan': the proof of initialisation fails: entry 'step'");
  EXPECT_EQ(TryOpen(drop_the_gather, {.prove = false}).status(), absl::OkStatus());
}

TEST(SessionErrors, PlansWithoutCode) {
  // Said before anything is allocated.
  ExpectRefused(
      [](fbs::PlanT& p) {
        p.images[0]->codes[0]->format = kNoImageFormat;
        p.images[0]->codes[0]->data.clear();
        p.arena_bytes = uint64_t{1} << 60;
      },
      absl::StatusCode::kFailedPrecondition, "'x.plan': the plan has no machine code, as it was compiled with");
}

TEST(SessionErrors, AnImageWithoutCodeThatNoKernelUses) {
  // Other kernels have code, so that compiling again would not help.
  ExpectRefused(
      [](fbs::PlanT& p) {
        auto unused = std::make_unique<fbs::ImageT>(*p.images[0]);
        unused->codes[0]->format = kNoImageFormat;
        unused->codes[0]->data.clear();
        p.images.push_back(std::move(unused));
      },
      absl::StatusCode::kInvalidArgument, "image 1: the cpu driver cannot load images of format 'none'");
}

TEST(SessionErrors, ScratchOfAnotherMachine) {
  ExpectRefused(
      [](fbs::PlanT& p) {
        p.kernels[testing::kMatmul]->arguments[3]->shape = {64};
        p.buffers[testing::kWorkspace]->shape = {64};
        p.buffers[testing::kWorkspace]->bytes = 64;
      },
      absl::StatusCode::kFailedPrecondition,
      "but the plan gives it 64: the plan was compiled for another CPU or thread count");
  ExpectRefused(
      [](fbs::PlanT& p) {
        p.kernels[testing::kMatmul]->arguments.pop_back();
        testing::LaunchAt(p, 1, 1, 1).operands.pop_back();
      },
      absl::StatusCode::kFailedPrecondition, "but the plan gives it 0");
}

TEST(SessionErrors, MoreMemoryThanThereIs) {
  ExpectRefused([](fbs::PlanT& p) { p.arena_bytes = uint64_t{1} << 60; }, absl::StatusCode::kResourceExhausted,
                "'x.plan': the arena: cannot allocate 1152921504606846976 bytes");
}

TEST(SessionErrors, InputsOutsideOfTheirLimit) {
  const auto session = *TryOpen(Nothing);
  ASSERT_TRUE(session->Run("init").ok());
  for (int32_t bad : {-1, 32, 1 << 30}) {
    WriteTensor<int32_t>(*session, session->Input("step", "tokens", 0), {0, 1, 2, 3, 4});
    std::vector<int32_t> tokens = {0, 1, 2, bad, 4};
    const absl::Status status = session->WriteAll<int32_t>(*session->Input("step", "tokens", 1), tokens);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("entry 'step': element 3 of input 'tokens', slot 1"), HasSubstr("[0, 32)")));
    EXPECT_EQ(session->Run("step").code(), absl::StatusCode::kFailedPrecondition) << "what was refused is not there";
    tokens[3] = 31;
    WriteTensor(*session, session->Input("step", "tokens", 1), tokens);
    EXPECT_TRUE(session->Run("step").ok());
    ASSERT_TRUE(session->Run("init").ok());
  }
}

TEST(SessionErrors, UnknownNames) {
  const auto session = *TryOpen(Nothing);
  EXPECT_THAT(std::string(session->Run("train").message()), HasSubstr("no entry 'train'; it has 'init', 'step'"));
  EXPECT_FALSE(session->Run(-1).ok());
  EXPECT_FALSE(session->Run(2).ok());
  EXPECT_THAT(std::string(session->Input("step", "labels").status().message()),
              HasSubstr("entry 'step' has no input 'labels'; it has 'tokens'"));
  EXPECT_EQ(session->Input("step", "tokens", 2).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(session->Output("init", "loss").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(session->State("w").status().message()), HasSubstr("no state 'w'"));
}

}  // namespace
}  // namespace bowline
