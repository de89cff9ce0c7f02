// Certificates of plans of several ranks: plans that a load refuses, proofs that sessions require, and the cost.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "checker/PlanChecker.h"
#include "runtime/executor/session.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace testing;  // bowline::testing

TEST(Certificates, AreCheckedAtLoad) {
  const auto refused = [](auto change) {
    fbs::PlanT plan = MakePipeline(2, 1, 3);
    EXPECT_TRUE(CertifyPlan(plan).ok());
    change(plan);
    const auto bytes = BytesOf(plan);
    const absl::Status status = VerifyPlan(PlanIn(bytes));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  using P = fbs::PlanT;
  EXPECT_THAT(refused([](P& p) {
                std::swap(p.certificates[0]->roles[0]->numbers[0], p.certificates[0]->roles[0]->numbers[1]);
              }),
              AllOf(HasSubstr("certificate 0 for entry 'step': role 0: call "), HasSubstr("numbers must increase")));
  EXPECT_THAT(refused([](P& p) { p.certificates[0]->roles[1]->numbers.pop_back(); }), HasSubstr("has no number"));
  EXPECT_THAT(refused([](P& p) { p.certificates[0]->roles[1]->numbers.push_back(99); }), HasSubstr("numbers for"));
  EXPECT_THAT(refused([](P& p) { p.certificates[0]->roles[0]->numbers.back() = 4000000000u; }),
              HasSubstr("there are at most"));
  EXPECT_THAT(refused([](P& p) { p.certificates[0]->entry = "other"; }), HasSubstr("there is no such entry"));
  EXPECT_THAT(refused([](P& p) { p.certificates[0]->roles.pop_back(); }),
              HasSubstr("it is for 1 roles; the plan has 2"));
  // The numbers are right, but the commands have changed.
  EXPECT_THAT(
      refused([](P& p) {
        for (auto& segment : p.programs[1]->segments) {
          for (auto& command : segment->commands) {
            if (auto* receive = command->body.AsReceive())
              receive->ranges[0] = fbs::Range(receive->ranges[0].operand(), 8);
          }
        }
      }),
      HasSubstr("does not match send to place 1 of 'pp.forward' in role 0, which has the same number: one moves 16 "
                "elements in range 0, the other 8"));
  fbs::PlanT without = MakePipeline(2, 1, 3);
  const auto bytes = BytesOf(without);
  const absl::Status status = RequireCertificates(PlanIn(bytes));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("the plan is for 2 ranks (pp=2, dp=1)"), HasSubstr("compile the model again")));
}

// A plan that was changed into one that is sound and computes something else.
TEST(Certificates, SayWhatIsComputed) {
  const auto change = [](auto apply) {
    fbs::PlanT plan = MakePipeline(2, 1, 3);
    EXPECT_TRUE(CertifyPlan(plan).ok());
    apply(plan);
    const auto bytes = BytesOf(plan);
    return VerifyPlan(PlanIn(bytes));
  };
  using P = fbs::PlanT;
  const auto refused = [&](auto apply) {
    const absl::Status status = change(apply);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  // The first stage computes the second microbatch from the inputs of the third; the last stage's gradients show it.
  const auto change_slot = [](P& p) {
    auto& timeline = p.programs[0]->timeline;
    const auto call = std::find_if(timeline.begin(), timeline.end(), [](const auto& c) { return c.slot() == 1; });
    *call = fbs::SegmentCall(call->segment(), 2);
  };
  EXPECT_EQ(
      refused(change_slot),
      "certificate 0 for entry 'step': role 1 'stage1' computes something else than the compiler certified: output "
      "'gradient'; the plan was changed after it was compiled; compile the model again");
  EXPECT_THAT(refused([](P& p) { p.entries[0]->inputs[0]->name = "another"; }),
              HasSubstr("role 0 'stage0' computes something else than the compiler certified: interface; "));
  EXPECT_THAT(refused([](P& p) { p.entries[1]->outputs.pop_back(); }), HasSubstr(": interface, the first of "));
  EXPECT_THAT(refused([](P& p) { p.certificates[0]->roles[1]->values[1] = fbs::ValueDigest(1, 2); }),
              HasSubstr("role 1 'stage1' computes something else"));
  EXPECT_THAT(refused([](P& p) { p.certificates[0]->roles[1]->values.pop_back(); }), HasSubstr("something else"));
  EXPECT_THAT(refused([](P& p) { p.certificates[0]->roles[1]->values.emplace_back(1, 2); }),
              HasSubstr("something else"));
  EXPECT_THAT(refused([](P& p) { p.certificates[0]->roles[1]->values.clear(); }),
              HasSubstr("some roles have values in the certificates, others have none"));
  EXPECT_TRUE(change([](P& p) { std::swap(p.kernels.front(), p.kernels.back()); }).ok());  // the only one
  EXPECT_TRUE(change([](P& p) { p.buffers[0]->name = "renamed"; }).ok());
  // Without values it proves that nobody waits for ever, which is not enough to run it.
  fbs::PlanT plan = MakePipeline(2, 1, 3);
  ASSERT_TRUE(CertifyPlan(plan).ok());
  for (auto& role : plan.certificates[0]->roles) role->values.clear();
  const auto bytes = BytesOf(plan);
  EXPECT_TRUE(VerifyPlan(PlanIn(bytes)).ok());
  EXPECT_THAT(std::string(RequireCertificates(PlanIn(bytes)).message()),
              HasSubstr("carries no proof that ranks compute the right values; compile the model again"));
}

TEST(Certificates, SessionsRequireThem) {
  fbs::PlanT plan = MakePipeline(2, 1, 3);
  const SessionOptions options;
  const absl::Status without = Session::Create(*LoadedPlan::FromBytes(BytesOf(plan)), options).status();
  EXPECT_EQ(without.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(without.message()), HasSubstr("carries no proof"));
  ASSERT_TRUE(CertifyPlan(plan).ok());
  // Now it is for two ranks, but one runs it.
  EXPECT_THAT(std::string(Session::Create(*LoadedPlan::FromBytes(BytesOf(plan)), options).status().message()),
              HasSubstr("but 1 run it"));
}

// 12,288 ranks in 8 stages. The cost is that of the programs of the stages; a circle is found in about the same time.
TEST(RankScale, CostsAsMuchAsTheProgramsOfTheRoles) {
  fbs::PlanT plan = MakePipeline(8, 1536, 2000, 1);
  const auto seconds = [](auto start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  auto start = std::chrono::steady_clock::now();
  CheckReport report;
  const absl::Status status = CertifyPlan(plan, &report);
  ASSERT_TRUE(status.ok()) << status;
  const double certify = seconds(start);
  const auto bytes = BytesOf(plan);
  start = std::chrono::steady_clock::now();
  ASSERT_TRUE(VerifyPlan(PlanIn(bytes)).ok());
  const double verify = seconds(start);
  uint64_t commands = 0;
  for (const CheckReport::Entry& entry : report.entries) commands += entry.launches + entry.communications;
  // The last stage but one sends a late gradient before it takes the activations that its peer sends first.
  auto& timeline = plan.programs[6]->timeline;
  std::swap(timeline[timeline.size() / 2], timeline[timeline.size() / 2 + 9]);
  plan.certificates.clear();
  const auto broken = BytesOf(plan);
  // Four bytes for each send, receive and collective of all stages; sums within a stage have no number.
  constexpr uint64_t kNumbers = 2000 * 2 * (7 + 7) + 8;
  EXPECT_GE(bytes.size() - broken.size(), 4 * kNumbers);
  EXPECT_LT(bytes.size() - broken.size(), 4 * kNumbers + 1024);
  start = std::chrono::steady_clock::now();
  const absl::Status refused = PlanChecker(PlanIn(broken)).check();
  const double refuse = seconds(start);
  EXPECT_FALSE(refused.ok());
  std::printf("%d ranks, %d commands of roles: certify %.2f s, verify %.2f s, refuse %.2f s, %zu bytes\n", 8 * 1536,
              static_cast<int>(commands), certify, verify, refuse, bytes.size());
  std::printf("%s\n", std::string(refused.message()).c_str());
}

}  // namespace
}  // namespace bowline
