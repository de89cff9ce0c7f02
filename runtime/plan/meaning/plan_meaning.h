#ifndef BOWLINE_RUNTIME_PLAN_MEANING_PLAN_MEANING_H_
#define BOWLINE_RUNTIME_PLAN_MEANING_PLAN_MEANING_H_

// Digests of a plan's results: two plans with equal digests give the same bits, whatever the order of their
// commands, their streams, events and places in memory.
//
// Each entry is executed, with its timeline expanded, on digests instead of values. A kernel's result has the digest of
// the kernel and of all that it reads; a copy or a transfer passes on digests of its source; a collective gives the
// digest of its members' operands. An initial value's digest is that of a constant's data or of an input or state name.
//
//   launch       H(result number, H(kernel, digests of the operands that it reads)); the kernel: KernelDigests
//   copy         the same pieces; so does a receive, with those of its send
//   all-reduce   element by element: bytes of H(axes, dtype, reduction, digests of all members), at the same offset
//   other        H(kind, axes, dtype, reduction, count, digests of all members), and the place of the member where each
//   collectives  gets something else
//
// Bytes that several commands wrote, or that do not begin with the first byte of a value, have the digest of the list
// of their pieces. Bytes that nothing wrote, that are a command's workspace, or that a command writes while it reads
// them through another operand (save in a declared in-place pair) hold nothing, which is like no value.
//
// Ranks of a role have the same digests: a digest then stands for a function of the rank's place. Roles are told apart,
// and executed beside each other: the k-th send from one to another is taken by the k-th receive, the k-th collectives
// of all on a communicator are one.
//
// If a plan has no races, every order that streams and events allow gives the same values; PlanChecker (checker)
// proves that it has none.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/plan/meaning/digest.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

struct ValueMeaning {
  std::string what;  // "output 'loss'", "state 'model.norm.weight'"
  Digest digest;
};

// The digests of an entry's effects on the ranks of a role, in this order: its interface, which
// callers and proofs take for granted (target, attachments, seed, mesh, ports, states, in-place pairs of kernels); its
// outputs, by name; each state that it changes, by flags and key; other buffers that it changes although they must not
// change.
struct RoleMeaning {
  std::vector<ValueMeaning> values;
};

struct EntryMeaning {
  std::string entry;
  std::vector<RoleMeaning> roles;
};

struct PlanMeaning {
  std::vector<EntryMeaning> entries;  // one for each name, in the order in which names first occur in the plan
};

// Computes the meaning of a plan that passes all checks of VerifyPlan but those of certificates. Linear in the expanded
// commands. kInvalidArgument where a role waits for another for ever; kResourceExhausted for a plan that takes more
// than kMostMeaningSteps steps to evaluate, one for each operand and each piece of it.
inline constexpr uint64_t kMostMeaningSteps = uint64_t{1} << 26;
absl::StatusOr<PlanMeaning> ComputeMeaning(const fbs::Plan& plan);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_MEANING_PLAN_MEANING_H_
