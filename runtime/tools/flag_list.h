#ifndef BOWLINE_RUNTIME_TOOLS_FLAG_LIST_H_
#define BOWLINE_RUNTIME_TOOLS_FLAG_LIST_H_

// The flags and commands of a tool, for the completion of shells. The tool prints them from the description by which it
// parses, and `bowline completion` reads them.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace CLI {
class App;
}

namespace bowline {

// The only argument of a tool that is to print its flags.
inline constexpr char kPrintFlags[] = "--print-flags";

struct FlagInfo {
  std::vector<std::string> names;    // with their dashes
  bool takes_value = false;          // in the next word, or behind '='
  std::vector<std::string> choices;  // of the value; empty: any value
  std::string description;
};

struct CommandInfo {
  std::string name;  // empty for the tool itself
  std::string description;
  std::vector<FlagInfo> flags;
  std::vector<std::string> choices;  // of words that are no flags; empty: any word
};

// The tool itself, and then its commands.
std::vector<CommandInfo> DescribeCommands(const CLI::App& app);

// One line for each command and each flag; FlagsFromText reads FlagsToText's output, and gives nothing for any other
// text.
std::string FlagsToText(const std::vector<CommandInfo>& commands);
std::vector<CommandInfo> FlagsFromText(absl::string_view text);

// Returns the text in which the executable `tool` lists its flags; empty if it fails.
std::string AskForFlags(const std::string& tool);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_FLAG_LIST_H_
