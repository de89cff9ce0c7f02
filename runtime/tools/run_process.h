#ifndef BOWLINE_RUNTIME_TOOLS_RUN_PROCESS_H_
#define BOWLINE_RUNTIME_TOOLS_RUN_PROCESS_H_

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/comm/control/launch.h"
#include "runtime/tools/rank_options.h"
#include "runtime/tools/spawn.h"

namespace bowline {

// Names and values that must be the same in all processes of a run.
using NamedValues = std::vector<std::pair<std::string, std::string>>;

// Runs this process as the rank of the plan that `launch` says, of several: meets the others, compares the plan and
// `values` with theirs, and calls `run`. Whatever fails ends the other ranks too; what
// fails there ends this one, with an error that says which rank waited for which, and which rank is the cause.
// `spawned`: what SpawnRanks gave this process, which is told when all have met; nothing if another program started it.
absl::Status RunAsProcess(const RankOptions& options, const Launch& launch, const SpawnedRank& spawned,
                          NamedValues values, const RunAsRank& run);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_RUN_PROCESS_H_
