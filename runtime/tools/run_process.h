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

// Runs this process as one of several ranks of the plan, the rank of `launch`: meets the other ranks, compares the plan
// and `values` with theirs, and calls `run`. A failure of one rank ends all ranks. The error of the others says which
// rank waited for which, and which rank is the cause. `spawned` is the value that SpawnRanks gave this process, and
// learns when all ranks have met; it is empty if another program started this process.
absl::Status RunAsProcess(const RankOptions& options, const Launch& launch, const SpawnedRank& spawned,
                          NamedValues values, const RunAsRank& run);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_RUN_PROCESS_H_
