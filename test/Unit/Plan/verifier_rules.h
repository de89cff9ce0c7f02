#ifndef BOWLINE_TEST_UNIT_PLAN_VERIFIER_RULES_H_
#define BOWLINE_TEST_UNIT_PLAN_VERIFIER_RULES_H_

// Tests of the rules of VerifyPlan: each rule is broken once, alone, in an otherwise sound plan.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "runtime/plan/plan_generated.h"

namespace bowline::testing {

struct Rule {
  const char* name;
  std::function<void(fbs::PlanT&)> breaks;
  const char* message;  // part of VerifyPlan's message then
};

inline std::string NameOfRule(const ::testing::TestParamInfo<Rule>& info) { return info.param.name; }

void ExpectAccepted(fbs::PlanT plan);
// Expects that VerifyPlan accepts the plan as it is, and refuses it with the rule's message once the rule is broken.
void ExpectRefused(fbs::PlanT plan, const Rule& rule);

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_UNIT_PLAN_VERIFIER_RULES_H_
