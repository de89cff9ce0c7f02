#ifndef BOWLINE_RUNTIME_TOOLS_RUN_RANKS_H_
#define BOWLINE_RUNTIME_TOOLS_RUN_RANKS_H_

#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "runtime/tools/rank_options.h"

namespace bowline {

// Runs `run` as every rank of the plan, each on a thread of its own with its own group; rank 0 on this one. A rank that
// fails ends all others. Returns the error of the rank that failed first, naming it.
absl::Status RunRanks(LoadedPlan plan, const RankOptions& options, const RunAsRank& run);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_RUN_RANKS_H_
