#ifndef BOWLINE_RUNTIME_TOOLS_CHILD_PROCESS_H_
#define BOWLINE_RUNTIME_TOOLS_CHILD_PROCESS_H_

#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace bowline {

// Runs a program to its end; its output goes to this process's standard error. It does not outlive this process.
//
// kCancelled when SIGINT or SIGTERM came meanwhile, which ended it: the caller has them blocked, on all threads.
// kInvalidArgument when it said by exit code 1 that its input is wrong, kInternal when it failed otherwise; both name
// the program, and the reason is its output.
absl::Status RunChild(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_CHILD_PROCESS_H_
