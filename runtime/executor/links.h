#ifndef BOWLINE_RUNTIME_EXECUTOR_LINKS_H_
#define BOWLINE_RUNTIME_EXECUTOR_LINKS_H_

#include "targets/costs/link.h"

namespace bowline {

// The links that a run emulates between its ranks, keyed by mesh axis.
using targets::LinkTable;

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_LINKS_H_
