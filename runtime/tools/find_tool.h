#ifndef BOWLINE_RUNTIME_TOOLS_FIND_TOOL_H_
#define BOWLINE_RUNTIME_TOOLS_FIND_TOOL_H_

#include <filesystem>
#include <string>
#include <vector>

namespace bowline {

// The folders in which tools are looked for: this executable's own, and those of PATH. The first one that has the tool
// wins.
std::vector<std::filesystem::path> ToolFolders();

// The executable file of the name in those folders; empty where there is none.
std::string FindTool(const std::string& name);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_FIND_TOOL_H_
