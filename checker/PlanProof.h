//===- PlanProof.h - the proofs that a loader repeats -----------*- C++ -*-===//
//
// A session calls only this function of the checker, when it loads a plan.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_PLANPROOF_H
#define BOWLINE_CHECKER_PLANPROOF_H

#include "runtime/base/status.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

/// Proves the facts listed in PlanChecker.h, except the meaning, for all commands of all roles. `plan` must have passed
/// VerifyPlan, which compares the meaning with the certificates. Returns kAborted with the first counter-example. Takes
/// about half a second for 350,000 commands.
absl::Status ProvePlan(const fbs::Plan &plan);

} // namespace bowline

#endif // BOWLINE_CHECKER_PLANPROOF_H
