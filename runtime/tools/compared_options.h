#ifndef BOWLINE_RUNTIME_TOOLS_COMPARED_OPTIONS_H_
#define BOWLINE_RUNTIME_TOOLS_COMPARED_OPTIONS_H_

#include "runtime/tools/run_process.h"

namespace CLI {
class App;
}

namespace bowline {

// What the processes of a run must have been given alike: every option of the parsed `app` but those that belong to one
// rank or change nothing that is computed (--rank, --metrics, --quiet, ...). Of data and weights their contents count,
// not where each machine has them.
NamedValues ComparedOptions(const CLI::App& app);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_COMPARED_OPTIONS_H_
