#ifndef BOWLINE_RUNTIME_PLAN_VERIFY_SEMANTIC_VERIFIER_H_
#define BOWLINE_RUNTIME_PLAN_VERIFY_SEMANTIC_VERIFIER_H_

#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// Limits that keep a small file from making code that walks the plan use much time or memory.
inline constexpr uint32_t kMaxRank = 32;
inline constexpr uint32_t kMaxThreads = 4096;
inline constexpr uint32_t kMaxSlots = 1 << 20;
// The most commands of one program with its timeline expanded.
inline constexpr uint64_t kMaxExpandedCommands = uint64_t{1} << 28;
inline constexpr uint32_t kMaxRoles = 4096;
inline constexpr uint32_t kMaxEvents = 1 << 20;
inline constexpr uint32_t kMaxStreams = 64;
inline constexpr uint64_t kMaxArenaBytes = uint64_t{1} << 62;

// Checks everything that a structurally valid FlatBuffer can still get wrong: every index, range, enum value, union
// tag, required name and size. After it, code that walks the plan needs no checks of its own. It does not check whether
// the commands make sense together: PlanChecker (checker) does.
//
// An error is kInvalidArgument, with the place by name and index, and the rule. Time is linear in the plan's size.
//
// The rules, by file:
//   semantic_verifier.cc      names, target, mesh, roles, arenas, communicators, attachments
//   verify_memory.cc          buffers lie in their role's arenas, states, constants and layouts fit their buffers
//   verify_kernels.cc         images, kernels, attributes, arguments, in-place pairs
//   verify_programs.cc        streams, segments, calls, commands and their operands
//   verify_communication.cc   collectives, sends and receives
//   verify_entries.cc         entries and their ports
//   verify_certificate.cc     certificates, where there are any, prove their claims
absl::Status VerifyPlan(const fbs::Plan& plan);

// Returns kFailedPrecondition if the verified plan is for several ranks and has no certificates: nothing proves then
// that its ranks do not wait for each other for ever.
absl::Status RequireCertificates(const fbs::Plan& plan);

// Returns kFailedPrecondition if the verified plan was made without the code that its kernels need.
absl::Status RequireCode(const fbs::Plan& plan);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_VERIFY_SEMANTIC_VERIFIER_H_
