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

/// Proves of a plan that passed VerifyPlan what PlanChecker.h lists, for the commands of all roles. The meaning is left
/// out: VerifyPlan compares it with the certificates. Returns kAborted with the first counter-example. Takes about half
/// a second for 350,000 commands.
absl::Status ProvePlan(const fbs::Plan &plan);

} // namespace bowline

#endif // BOWLINE_CHECKER_PLANPROOF_H
