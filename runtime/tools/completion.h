#ifndef BOWLINE_RUNTIME_TOOLS_COMPLETION_H_
#define BOWLINE_RUNTIME_TOOLS_COMPLETION_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"
#include "runtime/tools/flag_list.h"

namespace bowline {

// Returns the commands and flags of each verb of `bowline`; nothing for a tool that does not list them.
using FlagsOfVerbs = std::map<std::string, std::vector<CommandInfo>>;

// A script that lets a shell, "bash" or "zsh", complete `bowline VERB ...` and `bowline-VERB ...`: verbs, commands,
// flags, values that are choices, and files. Returns kInvalidArgument for another shell.
absl::StatusOr<std::string> CompletionScript(absl::string_view shell, const FlagsOfVerbs& verbs);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_COMPLETION_H_
