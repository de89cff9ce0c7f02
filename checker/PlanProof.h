//===- PlanProof.h - the proofs that a loader repeats -----------*- C++ -*-===//
//
// Sessions call this one function of the checker.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_PLANPROOF_H
#define BOWLINE_CHECKER_PLANPROOF_H

#include "runtime/base/status.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

/// Proves the facts of PlanChecker.h, for all commands of all roles, of a plan that passed VerifyPlan. The meaning is
/// left out: VerifyPlan compares it with the certificates. Returns kAborted with the first counter-example. Takes about
/// half a second for 350,000 commands.
absl::Status ProvePlan(const fbs::Plan &plan);

} // namespace bowline

#endif // BOWLINE_CHECKER_PLANPROOF_H
