#ifndef BOWLINE_RUNTIME_PLAN_MEANING_MEANING_INTERFACE_H_
#define BOWLINE_RUNTIME_PLAN_MEANING_MEANING_INTERFACE_H_

// Digests of the properties that callers of a verified plan rely on. Private to runtime/plan.

#include <vector>

#include "runtime/plan/meaning/digest.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// A digest for each role: of threads, seed, mesh, and the states of the role with their types and their places in whole
// tensors. The rest of the target is compared with the machine at load.
std::vector<Digest> InterfacesOfRoles(const fbs::Plan& plan);

// The digest of the entry's ports: of their names, types, slots and limits, their places in whole tensors, and of which
// of them are one buffer.
Digest InterfaceOfEntry(const fbs::Plan& plan, const fbs::Entry& entry);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_MEANING_MEANING_INTERFACE_H_
