#ifndef BOWLINE_RUNTIME_PLAN_VIEW_MATCHING_H_
#define BOWLINE_RUNTIME_PLAN_VIEW_MATCHING_H_

// Matches the communications of different roles that are one operation. Ranks of one role run the same commands, so
// within a role there is nothing to match.

#include <cstdint>
#include <string>

#include "runtime/plan/plan_generated.h"

namespace bowline {

// Returns whether the communicator's groups contain ranks of several roles. Each group then has ranks of all roles,
// because a group covers all coordinates along each of its axes. The plan must have passed VerifyPlan.
bool SpansRoles(const fbs::Plan& plan, uint32_t communicator);

// Returns whether the command communicates on a communicator that spans roles.
bool CommunicatesBetweenRoles(const fbs::Plan& plan, const fbs::Command& command);

// Returns why `first` in a program of role `first_role` and `second` in one of `second_role` cannot be the same
// operation: "one moves 12 elements in piece 0, the other 16". Empty where they can: collectives of the same kind,
// dtype, reduction and counts, or a send and the receive that takes it. Both communicate on the same communicator.
std::string WhyDifferent(uint32_t first_role, const fbs::Command& first, uint32_t second_role,
                         const fbs::Command& second);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_VIEW_MATCHING_H_
