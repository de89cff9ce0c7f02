#ifndef BOWLINE_RUNTIME_TOOLS_COMPILE_SERVED_H_
#define BOWLINE_RUNTIME_TOOLS_COMPILE_SERVED_H_

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "runtime/tools/plan_cache.h"

namespace bowline {

// A plan, and the folder that it is in, which may go with this object.
struct ServedPlan {
  LoadedPlan plan;
  PlanFolder folder;
};

// The plan that serves `model`, a path of IsModelPath: the one that is kept from before, or else as bowline-compile,
// which is found as tools are, makes it with `flags`. Where these do not limit the cache of keys and values, it takes a
// quarter of the memory that is available, divided by the ranks of --mesh, which all run on this machine, but no more
// than --max-batch sequences need, and at least what one needs. A
// plan whose cache is less than half or more than twice of that is compiled anew, as is one that is damaged.
//
// SIGINT and SIGTERM are blocked on all threads. kCancelled when one of them came while the compiler ran.
// kFailedPrecondition where there is no compiler. Other errors are those of RunChild and of LoadedPlan.
absl::StatusOr<ServedPlan> CompileServed(const std::string& model, const std::vector<CompileFlag>& flags,
                                         const std::function<void(absl::string_view)>& note);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_COMPILE_SERVED_H_
