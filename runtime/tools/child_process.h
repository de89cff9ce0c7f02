#ifndef BOWLINE_RUNTIME_TOOLS_CHILD_PROCESS_H_
#define BOWLINE_RUNTIME_TOOLS_CHILD_PROCESS_H_

#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace bowline {

// Runs a program to its end; its output goes to this process's standard error. It does not outlive this process.
//
// Returns kCancelled if SIGINT or SIGTERM came meanwhile and ended the program; the caller blocks both on all threads.
// Returns kInvalidArgument if the program exited with 1, for wrong input, and kInternal if it failed otherwise. Both
// name the program, whose output has the reason.
absl::Status RunChild(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_CHILD_PROCESS_H_
