#include "test/Unit/Plan/verifier_rules.h"

#include <gmock/gmock.h>

#include <utility>

#include "runtime/plan/verify/semantic_verifier.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline::testing {

void ExpectAccepted(fbs::PlanT plan) {
  const auto bytes = BytesOf(plan);
  const absl::Status status = VerifyPlan(PlanIn(bytes));
  EXPECT_TRUE(status.ok()) << status;
}

void ExpectRefused(fbs::PlanT plan, const Rule& rule) {
  const auto sound = BytesOf(plan);
  const absl::Status accepted = VerifyPlan(PlanIn(sound));
  EXPECT_TRUE(accepted.ok()) << accepted;
  rule.breaks(plan);
  const auto broken = BytesOf(plan);
  const absl::Status status = VerifyPlan(PlanIn(broken));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(rule.message));
}

}  // namespace bowline::testing
