#ifndef BOWLINE_RUNTIME_PLAN_MEANING_MEANING_INTERFACE_H_
#define BOWLINE_RUNTIME_PLAN_MEANING_MEANING_INTERFACE_H_

// Digests of the properties that callers of a verified plan rely on. Private to runtime/plan.

#include <vector>

#include "runtime/plan/meaning/digest.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// One digest per role: of target, threads, attachments, seed and mesh, and of the role's states with their keys, flags
// and types and with their places in whole tensors. Callers rely on all of these.
std::vector<Digest> InterfacesOfRoles(const fbs::Plan& plan);

// The digest of the entry's kind, bucket and runs in flight; of its ports with names, types, slots, limits, places in
// whole tensors and shared buffers; of its feeds; and of its promise about sequences (Entry.sequences).
Digest InterfaceOfEntry(const fbs::Plan& plan, const fbs::Entry& entry);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_MEANING_MEANING_INTERFACE_H_
