#ifndef BOWLINE_RUNTIME_TOOLS_COMPARED_OPTIONS_H_
#define BOWLINE_RUNTIME_TOOLS_COMPARED_OPTIONS_H_

#include "runtime/tools/run_process.h"

namespace CLI {
class App;
}

namespace bowline {

// The options that all processes of a run must have alike: every option of the parsed `app` except those that belong to
// one rank or change no result (--rank, --metrics, --quiet, ...). For data and weights the contents count, not the
// paths on each machine.
NamedValues ComparedOptions(const CLI::App& app);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_COMPARED_OPTIONS_H_
