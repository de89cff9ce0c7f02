#ifndef BOWLINE_RUNTIME_TOOLS_RUN_RANKS_H_
#define BOWLINE_RUNTIME_TOOLS_RUN_RANKS_H_

#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "runtime/tools/run_options.h"

namespace bowline {

// Runs `run` as every rank of the plan, each on a thread of its own with its own group in the options. Only rank 0
// speaks: the others are quiet and write no metrics. A rank that fails ends all others. Returns the error of the rank
// that failed first, naming it.
absl::Status RunRanks(LoadedPlan plan, const RunOptions& options, const RunRank& run);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_RUN_RANKS_H_
