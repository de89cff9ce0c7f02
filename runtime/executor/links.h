#ifndef BOWLINE_RUNTIME_EXECUTOR_LINKS_H_
#define BOWLINE_RUNTIME_EXECUTOR_LINKS_H_

#include <map>
#include <string>

#include "runtime/comm/link.h"

namespace bowline {

// Links to emulate, by axis of the mesh; that of "" is for all other axes. A communicator along several axes has the
// slowest of theirs.
using LinkTable = std::map<std::string, LinkOptions, std::less<>>;

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_LINKS_H_
