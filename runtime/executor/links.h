#ifndef BOWLINE_RUNTIME_EXECUTOR_LINKS_H_
#define BOWLINE_RUNTIME_EXECUTOR_LINKS_H_

#include "kernels/registry/link.h"

namespace bowline {

// Links to emulate.
using kernels::LinkTable;

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_LINKS_H_
