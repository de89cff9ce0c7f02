#ifndef BOWLINE_RUNTIME_COMM_LINK_H_
#define BOWLINE_RUNTIME_COMM_LINK_H_

#include <chrono>

#include "runtime/hal/operation.h"
#include "targets/costs/link.h"

namespace bowline {

using targets::LinkOptions;

// The time of an operation on a ring of n members in `steps` messages one after the other, `bytes` on each link in all.
// kernels/registry/collectives.h gives both for collectives; a send is one message, a barrier 2(n-1) without a byte.
// (all-gather: Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH, 2005;
// all-reduce: Patarasuk, Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations, 2009.)
std::chrono::nanoseconds LinkTime(const LinkOptions& link, int steps, double bytes);

// The time on a link that `operation` takes one of `members` members, for `total` elements.
std::chrono::nanoseconds TimeOnLink(const LinkOptions& link, const hal::Operation& operation, uint64_t total,
                                    int members);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_LINK_H_
