#ifndef BOWLINE_RUNTIME_TOOLS_FIND_TOOL_H_
#define BOWLINE_RUNTIME_TOOLS_FIND_TOOL_H_

#include <filesystem>
#include <string>
#include <vector>

namespace bowline {

// Returns the folders to search for tools, in order: this executable's own, and those of PATH. The first folder
// that has the tool wins.
std::vector<std::filesystem::path> ToolFolders();

// Returns the executable file of the name in those folders; empty if there is none.
std::string FindTool(const std::string& name);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_FIND_TOOL_H_
