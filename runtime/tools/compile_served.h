#ifndef BOWLINE_RUNTIME_TOOLS_COMPILE_SERVED_H_
#define BOWLINE_RUNTIME_TOOLS_COMPILE_SERVED_H_

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "runtime/tools/plan_cache.h"

namespace bowline {

// A plan and its folder. The destructor may remove the folder.
struct ServedPlan {
  LoadedPlan plan;
  PlanFolder folder;
};

// Returns the plan that serves `model`, a path of IsModelPath: the plan in the folder of plans, or else a plan that
// bowline-compile makes with `flags`. If the flags do not limit the cache of keys and values, it has a quarter of the
// available memory, divided by the ranks of --mesh, which all run on this machine; at least the size for one sequence,
// at most that for --max-batch sequences. A plan whose cache is less than half or more than twice of that size, or a
// damaged plan, is compiled again.
//
// The caller blocks SIGINT and SIGTERM on all threads. Returns kCancelled if one of them came while the compiler ran,
// and kFailedPrecondition if there is no compiler. Other errors are those of RunChild and of LoadedPlan.
absl::StatusOr<ServedPlan> CompileServed(const std::string& model, const std::vector<CompileFlag>& flags,
                                         const std::function<void(absl::string_view)>& note);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_COMPILE_SERVED_H_
