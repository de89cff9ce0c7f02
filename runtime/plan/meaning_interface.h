#ifndef BOWLINE_RUNTIME_PLAN_MEANING_INTERFACE_H_
#define BOWLINE_RUNTIME_PLAN_MEANING_INTERFACE_H_

// What callers of a verified plan take for granted, as digests. Private to runtime/plan.

#include <vector>

#include "runtime/plan/digest.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// By role: threads, seed, mesh, and the states of the role with their types and their places in whole tensors. What
// else is in the target is compared with the machine at load.
std::vector<Digest> InterfacesOfRoles(const fbs::Plan& plan);

// The ports: names, types, slots, limits, their places in whole tensors, and which of them are one buffer.
Digest InterfaceOfEntry(const fbs::Plan& plan, const fbs::Entry& entry);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_MEANING_INTERFACE_H_
