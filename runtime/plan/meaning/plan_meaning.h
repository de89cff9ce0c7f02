#ifndef BOWLINE_RUNTIME_PLAN_MEANING_PLAN_MEANING_H_
#define BOWLINE_RUNTIME_PLAN_MEANING_PLAN_MEANING_H_

// Digests of a plan's results: two plans with equal digests give the same bits, whatever the order of their
// commands, their streams, events and places in memory.
//
// Each entry is executed, with its timeline expanded, on digests instead of values. A kernel's result gets the digest
// of the kernel and of all that it reads; a copy or transfer passes on its source's digests; a collective's result gets
// the digest of its members' operands. An initial value gets that of a constant's data or of an input or state name.
//
//   launch       H(result number, H(kernel, digests of the operands that it reads)); the kernel: KernelDigests
//   copy         the same pieces; so does a receive, with those of its send
//   all-reduce   element by element: bytes of H(axes, dtype, reduction, digests of all members), at the same offset
//   other        H(kind, axes, dtype, reduction, count, digests of all members), and the place of the member where each
//   collectives  gets something else
//
// Bytes that several commands wrote, or that begin inside a value, have the digest of the list of their pieces. Some
// bytes hold no value, which is equal to no other: bytes that nothing wrote, a command's workspace, and bytes that a
// command writes while it reads them through another operand, except in a declared in-place pair.
//
// All ranks of a role have the same digests: a digest then stands for a function of the rank's place. Roles are kept
// apart and executed side by side. The k-th send from one role to another is taken by the k-th receive; the k-th
// collectives of all roles on a communicator are one collective.
//
// If a plan has no races, every order of commands that streams and events allow gives the same values. PlanChecker
// (checker) proves that a plan has no races.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/plan/meaning/value_meaning.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

struct EntryMeaning {
  std::string entry;
  std::vector<RoleMeaning> roles;
};

struct PlanMeaning {
  std::vector<EntryMeaning> entries;  // one per name, in the order in which names first occur in the plan
};

// Computes the meaning of a plan that passes all checks of VerifyPlan but those of certificates. Takes time linear in
// the expanded commands. Returns kInvalidArgument if a role waits for another for ever. Returns kResourceExhausted if
// it takes more than kMostMeaningSteps steps: one for each operand, and one for each piece of an operand.
absl::StatusOr<PlanMeaning> ComputeMeaning(const fbs::Plan& plan);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_MEANING_PLAN_MEANING_H_
